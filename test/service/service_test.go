package service

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// skipped is the exit status of a script that can't run here.
const skipped = 77

// build is where make build put things.
func build(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("URDMA_BUILD")
	if dir == "" {
		dir = filepath.Join("..", "..", "build")
	}
	if _, err := os.Stat(filepath.Join(dir, "urdmad")); err != nil {
		t.Skipf("nothing to run: %v; make build, or name the directory by URDMA_BUILD", err)
	}
	return dir
}

// TestUserService runs the whole life of the service of an ordinary user.
func TestUserService(t *testing.T) { run(t, "./service.sh", build(t)) }

// TestPackage installs the Debian package in a fresh system and boots that.
func TestPackage(t *testing.T) {
	if os.Getenv("URDMA_LONG") == "" {
		t.Skip("a fresh Debian takes minutes: URDMA_LONG=1 runs it")
	}
	debs, _ := filepath.Glob(filepath.Join(build(t), "urdma_*.deb"))
	if len(debs) == 0 {
		t.Skip("there is no package: make deb")
	}
	run(t, "./package.sh", debs[len(debs)-1])
}

func run(t *testing.T, script string, arguments ...string) {
	out, err := exec.Command(script, arguments...).CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == skipped {
		t.Skip(reason(string(out)))
	}
	t.Logf("%s", out)
	if err != nil {
		t.Fatalf("%s: %v", script, err)
	}
}

func reason(out string) string {
	for s := bufio.NewScanner(strings.NewReader(out)); s.Scan(); {
		if text, ok := strings.CutPrefix(s.Text(), "SKIP: "); ok {
			return text
		}
	}
	return "no reason given"
}
