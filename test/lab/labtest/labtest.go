// Package labtest makes labs for tests, or skips the test, and removes them at its end.
package labtest

import (
	"os"
	"path/filepath"
	"testing"

	"urdma/test/lab"
)

// New makes a lab with the programs in the directory named by the environment variable URDMA_BUILD. Without that
// variable it skips the test.
func New(t *testing.T) *lab.Lab {
	t.Helper()
	build := os.Getenv("URDMA_BUILD")
	if build == "" {
		t.Skip("URDMA_BUILD doesn't say where urdmad is; make test does")
	}
	if _, err := os.Stat(filepath.Join(build, "urdmad")); err != nil {
		t.Skipf("%v; make build", err)
	}
	l, err := lab.New(build)
	if err != nil {
		t.Fatal(err)
	}
	_, err = os.Stat(l.Program("clock.so"))
	l.FastClock = err == nil && os.Getenv("URDMA_LONG") == "" // long tests use the real clock
	t.Cleanup(l.Close)
	return l
}

// Join makes a lab of two hosts joined by the wire, or skips the test if the wire needs root. At the end of the test
// their urdmads must stop cleanly.
func Join(t *testing.T, w lab.Wire, settings lab.Config) (a, b *lab.Node) {
	t.Helper()
	return JoinIn(t, New(t), w, settings)
}

// JoinIn is Join in an existing lab.
func JoinIn(t *testing.T, l *lab.Lab, w lab.Wire, settings lab.Config) (a, b *lab.Node) {
	t.Helper()
	if err := l.Can(w); err != nil {
		t.Skip(err)
	}
	a, b, err := l.Join(w, settings)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, n := range Nodes(a, b) {
			if t.Failed() {
				t.Logf("urdmad of %s:\n%s", n.Name, lab.Tail(n.Daemon.Output(), 20))
				continue
			}
			if err := n.StopDaemon(); err != nil {
				t.Error(err)
			}
		}
	})
	return a, b
}

// Nodes returns the two hosts of a wire; for loopback, the only one.
func Nodes(a, b *lab.Node) []*lab.Node {
	if a == b {
		return []*lab.Node{a}
	}
	return []*lab.Node{a, b}
}
