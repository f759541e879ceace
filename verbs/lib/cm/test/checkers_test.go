package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestCheckers runs every case under ThreadSanitizer and under valgrind; TestCases uses AddressSanitizer.
// valgrind runs code compiled without any sanitizer.
func TestCheckers(t *testing.T) {
	if os.Getenv("URDMA_LONG") == "" {
		t.Skip("takes minutes; make test-long")
	}
	plain := filepath.Join(t.TempDir(), "plain")
	compile(t, plain, casesSources(t)...)
	names, err := exec.Command(plain).Output()
	if err != nil {
		t.Fatal(err)
	}
	for name, argv := range map[string][]string{
		"thread":   {"setarch", "-R", casesProgram(t, "thread")},
		"valgrind": {"valgrind", "-q", "--error-exitcode=9", "--leak-check=full", "--errors-for-leak-kinds=definite", plain},
	} {
		if _, err := exec.LookPath(argv[0]); err != nil {
			t.Log(err)
			continue
		}
		for _, c := range strings.Fields(string(names)) {
			t.Run(name+"/"+c, func(t *testing.T) {
				if out, err := exec.Command(argv[0], append(argv[1:], c)...).CombinedOutput(); err != nil {
					t.Errorf("%v\n%s", err, out)
				}
			})
		}
	}
}
