package test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"urdma/test/programtest"
)

// listed reads one of the checked-in lists of symbols in the real libraries.
func listed(t *testing.T, name string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../exports", name+".list"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

var answerRow = regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (inline|[A-Z]+_[0-9.]+) \\| ([^|]*) \\| ([^|]*)\\|$")

// answersOf reads docs/VERBS.md: the result of each function, by name@VERSION or, for inline functions, by
// name.
func answersOf(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs/VERBS.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for _, m := range answerRow.FindAllStringSubmatch(string(text), -1) {
		key := m[1] + "@" + m[2]
		if m[2] == "inline" {
			key = m[1]
		}
		if _, twice := rows[key]; twice {
			t.Errorf("docs/VERBS.md has two rows for %s", key)
		}
		if !slices.Contains([]string{"implemented", "refused EOPNOTSUPP", "refused ENOSYS", "nothing"}, m[3]) {
			t.Errorf("%s: %q is no answer", key, m[3])
		}
		if m[3] == "nothing" && strings.TrimSpace(m[4]) == "" {
			t.Errorf("%s does nothing, and the row doesn't say why", key)
		}
		rows[key] = m[3]
	}
	return rows
}

// TestTableIsComplete: every exported or inline function of the real libraries has a row, and there are no
// other rows.
func TestTableIsComplete(t *testing.T) {
	rows := answersOf(t)
	names := slices.Concat(listed(t, "libibverbs"), listed(t, "librdmacm"))
	for _, line := range listed(t, "inlines") {
		name, _, _ := strings.Cut(line, " ")
		names = append(names, name)
	}
	for _, name := range names {
		if _, ok := rows[name]; !ok {
			t.Errorf("docs/VERBS.md has no row for %s", name)
		}
		delete(rows, name)
	}
	for name := range rows {
		t.Errorf("docs/VERBS.md has a row for %s, which no list has", name)
	}
}

// TestTableIsTrue: the functions that the table lists as refused fail with that errno value, and all others
// do not.
func TestTableIsTrue(t *testing.T) {
	rows := answersOf(t)
	dir := t.TempDir()
	var operations strings.Builder
	for _, line := range listed(t, "inlines") {
		if name, operation, _ := strings.Cut(line, " "); operation != "-" {
			fmt.Fprintf(&operations, "OPERATION(%s, %s)\n", name, operation)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "operations.h"), []byte(operations.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	binary := programtest.Compile(t, filepath.Join(dir, "answers"), "-I"+dir, "testdata/alone/answers.c", "-libverbs", "-lrdmacm",
		"-ldl")
	c := exec.Command(binary)
	c.Env = append(os.Environ(), "LD_PRELOAD="+preload(t), "URDMA_SOCKET="+startUrdmad(t).path)
	c.Stdin = strings.NewReader(strings.Join(slices.Concat(listed(t, "libibverbs"), listed(t, "librdmacm")), "\n"))
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	asked := 0
	for line := range strings.Lines(string(out)) {
		name, answer, _ := strings.Cut(strings.TrimSpace(line), " ")
		asked++
		if said, refused := rows[name], strings.HasPrefix(answer, "refused"); refused && said != answer ||
			!refused && (answer != "other" || strings.HasPrefix(said, "refused")) {
			t.Errorf("%s: docs/VERBS.md says %q, the library %q", name, said, answer)
		}
	}
	if asked < 180 {
		t.Errorf("only %d functions answered:\n%s", asked, out)
	}
}
