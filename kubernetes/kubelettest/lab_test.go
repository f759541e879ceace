package kubelettest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"urdma/kubernetes/daemon"
	"urdma/test/lab"
)

// count is the number of devices in these tests.
const count = 3

// newLab is a lab with the programs of make build.
func newLab(t *testing.T) *lab.Lab {
	t.Helper()
	build := os.Getenv("URDMA_BUILD")
	if build == "" {
		build = "../../build"
	}
	if _, err := os.Stat(filepath.Join(build, "urdmad")); err != nil {
		t.Skipf("SKIPPED: run make build first: %v", err)
	}
	l, err := lab.New(build)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

var builtIn string // directory with urdma-kubelet, once a test has needed it

// build builds urdma-kubelet, and returns its path.
var build = sync.OnceValues(func() (path string, err error) {
	if builtIn, err = os.MkdirTemp("", "urdma-kubelet"); err != nil {
		return "", err
	}
	path = filepath.Join(builtIn, "urdma-kubelet")
	out, err := exec.Command("../../.ci/go", "build", "-C", "..", "-o", path, ".").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, out)
	}
	return path, err
})

// program returns the path of urdma-kubelet.
func program(t *testing.T) string {
	t.Helper()
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestMain(m *testing.M) {
	status := m.Run()
	os.RemoveAll(builtIn)
	os.Exit(status)
}

// specification writes the CDI specification as the package installs it, for the lab's library.
func specification(t *testing.T, l *lab.Lab) string {
	t.Helper()
	text, err := os.ReadFile("../../packaging/cdi.json")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(l.Dir, "cdi.json")
	write(t, path, strings.ReplaceAll(string(text), "@LIBDIR@", filepath.Dir(l.Program("liburdma.so"))))
	return path
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func start(t *testing.T, l *lab.Lab, argv ...string) *lab.Process {
	t.Helper()
	p, err := l.Start(lab.Options{Env: os.Environ()}, argv...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%v:\n%s", argv, p.Output())
		}
	})
	return p
}

// loopback returns a function that starts a urdmad with a loopback port, and the path of its socket.
func loopback(t *testing.T, l *lab.Lab) (begin func() *lab.Process, socket string) {
	t.Helper()
	socket = filepath.Join(l.Dir, "socket", "urdmad.sock")
	config := filepath.Join(l.Dir, "urdma.json")
	write(t, config, fmt.Sprintf(`{"socket": %q, "ports": [{"vdev": "loopback", "ipv4_address": "198.18.0.1/24"}]}`, socket))
	return func() *lab.Process { return start(t, l, l.Program("urdmad"), "--config", config) }, socket
}

// end ends a process as Kubernetes ends containers, and expects exit status 0.
func end(t *testing.T, p *lab.Process) {
	t.Helper()
	p.Signal(syscall.SIGTERM)
	if err := p.Wait(lab.Patience); err != nil {
		t.Fatalf("%v\n%s", err, p.Output())
	}
}

// observe runs an observer until the test ends.
func observe(t *testing.T, socket string) *daemon.Observer {
	t.Helper()
	o := daemon.New(socket)
	done := make(chan struct{})
	go func() {
		defer close(done)
		o.Run(t.Context(), func(daemon.State) {})
	}()
	t.Cleanup(func() { <-done })
	return o
}
