package test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"urdma/test/programtest"
)

// compile builds the library's sources with additional sources and flags.
func compile(t *testing.T, output string, args ...string) {
	t.Helper()
	sources, err := filepath.Glob("../*.c")
	if err != nil || len(sources) == 0 {
		t.Fatalf("no C sources beside the test: %v", err)
	}
	sources = append(sources, "../../session/readers.c")
	args = append(append([]string{"-std=c11", "-fvisibility=hidden"}, args...), sources...)
	programtest.Compile(t, output, append(args, "-lpthread")...)
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
