package test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"
)

var strict = []string{"-std=c11", "-D_GNU_SOURCE", "-g", "-O1", "-fvisibility=hidden", "-Wall", "-Wextra", "-Werror"}

// compile builds the library's sources with additional sources and flags.
func compile(t *testing.T, output string, args ...string) {
	t.Helper()
	sources, err := filepath.Glob("../*.c")
	if slices.Contains(args, "-shared") { // the whole of librdmacm
		for _, folder := range []string{"../../rsockets", "../../rsockets/datagrams"} {
			more, _ := filepath.Glob(folder + "/*.c")
			sources = append(sources, more...)
		}
	}
	if err != nil || len(sources) == 0 {
		t.Fatalf("no C sources beside the test: %v", err)
	}
	sources = append(sources, "../../session/readers.c")
	args = append(append(append([]string{}, strict...), args...), sources...)
	args = append(args, "-o", output, "-lpthread")
	if out, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
		t.Fatalf("gcc %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func casesSources(t *testing.T) []string {
	t.Helper()
	sources, err := filepath.Glob("testdata/cases/*.c")
	if err != nil || len(sources) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	return append(sources, "testdata/fake.c")
}

// casesProgram builds the cases with sanitizers that end the program at the first error.
func casesProgram(t *testing.T, sanitizers string) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "cm_test")
	compile(t, binary, append(casesSources(t), "-fsanitize="+sanitizers, "-fno-sanitize-recover=all")...)
	return binary
}

func TestThreadsShareAChannel(t *testing.T) {
	binary := casesProgram(t, "thread")
	for _, name := range []string{"threads", "destroy_waits"} {
		// Newer kernels randomise addresses more than this gcc's runtime supports.
		if out, err := exec.Command("setarch", "-R", binary, name).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

func TestCases(t *testing.T) {
	binary := casesProgram(t, "address,undefined")
	t.Run("event names", func(t *testing.T) { compareEventNames(t, binary) })
	names, err := exec.Command(binary).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range strings.Fields(string(names)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if out, err := exec.Command(binary, name).CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// compareEventNames compares them with the real library's.
func compareEventNames(t *testing.T, cases string) {
	ours, err := exec.Command(cases, "strings").Output()
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(t.TempDir(), "names")
	gcc := exec.Command("gcc", "-std=c11", "testdata/event_names.c", "-o", binary, "-lrdmacm")
	if out, err := gcc.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	theirs, err := exec.Command(binary).Output()
	if err != nil {
		t.Fatal(err)
	}
	if string(ours) != string(theirs) {
		t.Errorf("names of events:\n%s\nlibrdmacm has:\n%s", ours, theirs)
	}
}

// symbols lists the symbols that a shared object defines, as "name version" if they have versions.
func symbols(t *testing.T, object string) map[string]bool {
	t.Helper()
	out, err := exec.Command("nm", "-D", "--defined-only", object).Output()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, line := range strings.Split(string(out), "\n") {
		fields := strings.Fields(line)
		if len(fields) == 3 && fields[1] == "T" {
			found[strings.Replace(fields[2], "@@", " ", 1)] = true
		}
	}
	return found
}

func exports(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile("../exports.map-list")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		listed[line] = true
	}
	return listed
}

// difference describes the elements that are in only one of two sets.
func difference(a, b map[string]bool) string {
	var lines []string
	for name := range a {
		if !b[name] {
			lines = append(lines, "+ "+name)
		}
	}
	for name := range b {
		if !a[name] {
			lines = append(lines, "- "+name)
		}
	}
	sort.Strings(lines)
	return strings.Join(lines, "\n")
}

// No function of librdmacm may be missing here, because programs would call the real one.
func TestExportsMatchLibrdmacm(t *testing.T) {
	path, err := exec.Command("gcc", "-print-file-name=librdmacm.so").Output()
	if err != nil {
		t.Fatal(err)
	}
	theirs := symbols(t, strings.TrimSpace(string(path)))
	if d := difference(exports(t), theirs); d != "" {
		t.Errorf("exports.map-list (+) and librdmacm (-) differ:\n%s", d)
	}
}

func TestEveryExportIsDefined(t *testing.T) {
	object := filepath.Join(t.TempDir(), "cm.so")
	compile(t, object, "-shared", "-fPIC")
	listed := map[string]bool{}
	for line := range exports(t) {
		var name, version string
		if _, err := fmt.Sscan(line, &name, &version); err != nil {
			t.Fatalf("exports.map-list: %q: expected a symbol and its version", line)
		}
		listed[name] = true
	}
	if d := difference(symbols(t, object), listed); d != "" {
		t.Errorf("defined (+) and listed (-) differ:\n%s", d)
	}
}
