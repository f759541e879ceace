// Package labtest has labs for tests: made or the test skipped, and taken down at
// its end.
package labtest

import (
	"os"
	"path/filepath"
	"testing"

	"urdma/test/lab"
)

// New makes a lab of the programs in the directory that the environment variable
// URDMA_BUILD names, or skips the test.
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
	l.FastClock = err == nil && os.Getenv("URDMA_LONG") == "" // there perftest runs as users have it
	t.Cleanup(l.Close)
	return l
}

// Join makes a lab of two hosts joined by the wire, or skips the test where only
// root could. In the end their urdmads have to stop cleanly.
func Join(t *testing.T, w lab.Wire, settings lab.Config) (a, b *lab.Node) {
	t.Helper()
	return JoinIn(t, New(t), w, settings)
}

// JoinIn is Join in a lab that is there.
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
		if t.Failed() {
			return
		}
		for _, n := range Nodes(a, b) {
			if err := n.StopDaemon(); err != nil {
				t.Error(err)
			}
		}
	})
	return a, b
}

// Nodes are the two of a wire, or the one of the loopback.
func Nodes(a, b *lab.Node) []*lab.Node {
	if a == b {
		return []*lab.Node{a}
	}
	return []*lab.Node{a, b}
}
