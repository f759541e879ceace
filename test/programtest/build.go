package programtest

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"sync"
	"testing"
)

var builds struct {
	mu   sync.Mutex
	dir  string // "" until something is built
	errs map[string]error
}

// Main runs the tests of a package and removes what Program built. It returns the exit status.
func Main(m *testing.M) int {
	defer func() { _ = os.RemoveAll(builds.dir) }() // harmless for ""
	return m.Run()
}

// builtDaemon is the urdmad that is there already, or "".
func builtDaemon() string {
	if daemon := os.Getenv("URDMA_DAEMON"); daemon != "" {
		return daemon
	}
	if build := os.Getenv("URDMA_BUILD"); build != "" {
		return filepath.Join(build, "urdmad")
	}
	return ""
}

// Program builds a Go program of this module, such as "urdma/urdmad", once for all tests of a package whose TestMain
// calls Main. It returns the program's path. Of urdmad there is none to build where URDMA_DAEMON names one, or
// URDMA_BUILD the directory of one that is built.
func Program(t testing.TB, name string) string {
	t.Helper()
	if daemon := builtDaemon(); daemon != "" && name == "urdma/urdmad" {
		return daemon
	}
	if out, err := exec.Command("pkg-config", "--exists", "libdpdk").CombinedOutput(); err != nil {
		t.Skipf("urdmad needs libdpdk-dev to build (pkg-config libdpdk: %v %s)", err, out)
	}
	builds.mu.Lock()
	defer builds.mu.Unlock()
	if builds.dir == "" {
		dir, err := os.MkdirTemp("", "urdma-test-")
		if err != nil {
			t.Fatal(err)
		}
		builds.dir, builds.errs = dir, map[string]error{}
	}
	err, done := builds.errs[name]
	if !done {
		var out []byte
		if out, err = exec.Command("go", "build", "-o", builds.dir+"/", name).CombinedOutput(); err != nil {
			err = fmt.Errorf("building %s: %w\n%s", name, err, out)
		}
		builds.errs[name] = err
	}
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(builds.dir, path.Base(name))
}
