package writers

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"urdma/test/lab"
	"urdma/test/lab/labtest"
	"urdma/test/programtest"
)

// build makes the program in a place where every user can run it.
func build(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("SKIPPED: no gcc")
	}
	files, err := filepath.Glob("testdata/*.c")
	if err != nil || len(files) == 0 {
		t.Fatalf("testdata: %d files, %v", len(files), err)
	}
	// Not t.TempDir, which only its user may enter, nor /tmp, which may have no direct I/O.
	dir, err := os.MkdirTemp("/var/tmp", "urdma-writers")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"-std=c11", "-O2"}, files...)
	return programtest.Compile(t, filepath.Join(dir, "writers"), append(args, "-libverbs", "-lpthread", "-ldl")...)
}

// trial is a run of the program as a user, on that user's own urdmad.
type trial struct {
	uid     int
	seconds int      // for all cells together
	urdma   []string // flags of urdma run
	program []string // flags of the program
}

func (r trial) run(t *testing.T) {
	t.Helper()
	l := labtest.New(t)
	binary := build(t)
	dir := filepath.Join(filepath.Dir(binary), "files")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 {
		if err := os.Chown(dir, r.uid, r.uid); err != nil {
			t.Fatal(err)
		}
	}
	argv := slices.Concat([]string{l.Program("urdma"), "run"}, r.urdma,
		[]string{"--", binary, "--dir", dir, "--seconds", fmt.Sprint(r.seconds)}, r.program)
	if seed := os.Getenv("URDMA_SEED"); seed != "" {
		argv = append(argv, "--seed", seed)
	}
	env := []string{"XDG_RUNTIME_DIR=" + dir, "TMPDIR=" + dir, "HOME=" + dir, "LC_ALL=C", "PATH=" + os.Getenv("PATH")}
	p, err := l.Start(lab.Options{UID: r.uid, Env: env, Dir: dir}, argv...)
	if err != nil {
		t.Fatal(err)
	}
	err = p.Wait(time.Duration(r.seconds)*time.Second + 10*time.Minute)
	report(t, p.Output())
	if err != nil {
		t.Error(err)
	}
}

var cellLine = regexp.MustCompile(`(?m)^(good|WRONG|skipped) (\S+) \(seed.*$`)

// report prints the errors, and the cases that could not be tried.
func report(t *testing.T, out string) {
	t.Helper()
	from := 0
	for _, m := range cellLine.FindAllStringSubmatchIndex(out, -1) {
		said, verdict, name := out[from:m[1]], out[m[2]:m[3]], out[m[4]:m[5]]
		from = m[1]
		switch verdict {
		case "WRONG":
			t.Error(strings.TrimSpace(said))
		case "skipped":
			t.Run(name, func(t *testing.T) { t.Skip("SKIPPED: " + strings.TrimSpace(said)) })
		}
	}
	t.Log(lab.Tail(out, 1))
}

// length returns the duration of a trial: longer with URDMA_LONG=1.
func length() (seconds int) {
	if os.Getenv("URDMA_LONG") != "" {
		return 300
	}
	return 15
}

// set gives a setting of the kernel another value for the time of the test. If that is refused, the parts that need
// it are skipped with a message.
func set(t *testing.T, path, value string) {
	t.Helper()
	before, err := os.ReadFile(path)
	if err != nil || strings.TrimSpace(string(before)) != "0" || os.WriteFile(path, []byte(value), 0) != nil {
		return // it does not exist, has this value, or we may not set it
	}
	t.Cleanup(func() {
		if err := os.WriteFile(path, before, 0); err != nil {
			t.Error(err)
		}
	})
}

// TestWriters: no byte is lost, whichever way it is written.
func TestWriters(t *testing.T) {
	set(t, "/sys/kernel/mm/ksm/run", "1")
	set(t, "/proc/sys/vm/nr_hugepages", "16")
	trial{uid: os.Getuid(), seconds: length()}.run(t)
}

func TestWritersOfAnOrdinaryUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: not root: TestWriters has run as an ordinary user")
	}
	trial{uid: lab.OrdinaryUID, seconds: length()}.run(t)
}

// TestWritersSharedMalloc: malloc returns memory that urdmad maps.
func TestWritersSharedMalloc(t *testing.T) {
	for _, kind := range []string{"malloc", "aligned"} {
		t.Run(kind, func(t *testing.T) {
			trial{uid: os.Getuid(), seconds: length() / 5, urdma: []string{"--share-malloc"},
				program: []string{"--kind", kind}}.run(t)
		})
	}
}

// TestEachWriterNotices: if pages are moved under the program, each case notices it. A case ends as soon as it has,
// or after half a minute.
func TestEachWriterNotices(t *testing.T) {
	trial{uid: os.Getuid(), seconds: 30 * cells(t), program: []string{"--fault"}}.run(t)
}

func list(t *testing.T) (ways map[string]int) {
	t.Helper()
	out, err := exec.Command(build(t), "--list").Output()
	if err != nil {
		t.Fatal(err)
	}
	ways = map[string]int{}
	for line := range bytes.Lines(out) {
		name, kinds, _ := strings.Cut(string(line), ":")
		ways[name] = len(strings.Fields(kinds))
	}
	return ways
}

func cells(t *testing.T) (n int) {
	for _, kinds := range list(t) {
		n += kinds
	}
	return n
}

// TestTable: the table in docs/VERBS.md has exactly the ways that the program tries.
func TestTable(t *testing.T) {
	text, err := os.ReadFile("../../docs/VERBS.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(text), "## Who else writes to memory\n")
	if !found {
		t.Fatal("docs/VERBS.md has no table of who else writes to memory")
	}
	table, _, _ = strings.Cut(table, "\n## ")
	ways := list(t)
	for line := range strings.Lines(table) {
		columns := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(columns) < 3 || !strings.HasPrefix(line, "| ") {
			continue
		}
		for _, name := range regexp.MustCompile("`([^`]*)`").FindAllStringSubmatch(columns[len(columns)-1], -1) {
			if ways[name[1]] == 0 {
				t.Errorf("docs/VERBS.md names the row %s, which there isn't", name[1])
			}
			delete(ways, name[1])
		}
	}
	for name := range ways {
		t.Errorf("docs/VERBS.md doesn't name the row %s", name)
	}
}
