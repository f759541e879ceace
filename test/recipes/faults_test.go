package recipes

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// faultTests are the sections of docs/fault-tests.md with commands: their requirements, the file that the section
// quotes, what a run says, and what it says where there is no urdma.
var faultTests = map[string]struct {
	programs          []string
	file, says, skips string
}{
	"C": {[]string{"gcc"}, "c/faults.c", "6 tests passed", "SKIP: this needs urdma"},
	"GoogleTest": {[]string{"g++", "/usr/include/gtest/gtest.h*"}, "gtest/faults.cc", "[  PASSED  ] 2 tests.",
		"[  SKIPPED ] 2 tests"},
	"Go": {nil, "go/faults_test.go", "ok  \turdma/examples/faults/go", "ok  \turdma/examples/faults/go"},
	"pytest": {[]string{"/usr/lib/python3/dist-packages/pyverbs/device.cpython-*.so",
		"/usr/lib/python3/dist-packages/pytest/__init__.p*"}, "python/test_faults.py", "3 passed", "3 skipped"},
}

var quoted = regexp.MustCompile("(?ms)^```([a-z+]*)\n(.*?)^```$")

// TestFaultTests: each recipe passes on urdma, on each kind of adapter, is skipped elsewhere, and the page quotes what
// is tested.
func TestFaultTests(t *testing.T) {
	dir := top(t)
	page, err := os.ReadFile("../../docs/fault-tests.md")
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, part := range strings.Split(string(page), "\n## ")[1:] {
		name, body, _ := strings.Cut(part, "\n")
		blocks := quoted.FindAllStringSubmatch(body, -1)
		if len(blocks) == 0 {
			continue
		}
		ran++
		t.Run(name, func(t *testing.T) {
			want, ok := faultTests[name]
			if !ok {
				t.Fatal("the test does not know this section")
			}
			need(t, want.programs)
			file, err := os.ReadFile(filepath.Join("../../examples/faults", want.file))
			if err != nil {
				t.Fatal(err)
			}
			for _, b := range blocks {
				if language, text := b[1], b[2]; language == "" {
					runFaultTest(t, dir, text, want.says, want.skips)
				} else if !strings.Contains(string(file), text) {
					t.Errorf("%s does not contain\n%s", want.file, text)
				}
			}
		})
	}
	if ran != len(faultTests) {
		t.Errorf("%d sections with blocks, expected %d", ran, len(faultTests))
	}
}

// runFaultTest runs a block as it is typed, on other kinds of adapters, and without urdma.
func runFaultTest(t *testing.T, dir, text, says, skips string) {
	t.Helper()
	const run = "build/urdma run -- "
	lines := strings.Split(strings.TrimSpace(text), "\n")
	last := len(lines) - 1
	program, ok := strings.CutPrefix(lines[last], run)
	if !ok {
		t.Fatalf("%q does not begin with %q", lines[last], run)
	}
	fresh := []string{"GOFLAGS=-count=1"} // go test remembers
	if out := typed(t, dir, fresh, text); !strings.Contains(out, says) {
		t.Errorf("%s\nprints\n%s\nexpected %q", text, out, says)
	}
	for _, kind := range []string{"iwarp", "roce"} {
		if out := typed(t, dir, fresh, "URDMA_TRANSPORT="+kind+" "+lines[last]); !strings.Contains(out, says) {
			t.Errorf("%s as %s prints\n%s\nexpected %q", program, kind, out, says)
		}
	}
	c := exec.Command("bash", "-c", program) // its exit status says that it was skipped, or nothing
	c.Dir, c.Env = dir, append(os.Environ(), fresh[0], "URDMA_SOCKET="+filepath.Join(t.TempDir(), "none"))
	if out, _ := c.CombinedOutput(); !strings.Contains(string(out), skips) {
		t.Errorf("%s without urdma prints\n%s\nexpected %q", program, out, skips)
	}
}
