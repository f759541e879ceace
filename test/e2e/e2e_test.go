// Package e2e runs the real urdmad, joined by every kind of wire, and Debian's
// own programs on it. `make test` builds what it needs and says where that is
// by URDMA_BUILD; without it the tests are skipped.
package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"urdma/test/lab"
)

// long tells whether the long tests were asked for.
var long = os.Getenv("URDMA_LONG") != ""

// perWire are the wires every program has to pass over.
var perWire = []lab.Wire{lab.Loopback, lab.Memif, lab.UDP, lab.AFPacket, lab.AFPacketKernel, lab.AFXDP, lab.AFXDPKernel}

// newLab makes a lab that ends with the test, or skips the test.
func newLab(t *testing.T) *lab.Lab {
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
	t.Cleanup(l.Close)
	return l
}

// join sets up a lab on the wire, or skips the test.
func join(t *testing.T, w lab.Wire, settings lab.Config) (a, b *lab.Node) {
	t.Helper()
	return joinIn(t, newLab(t), w, settings)
}

// joinIn joins two hosts of a lab by the wire, or skips the test where only root
// could. In the end they have to stop cleanly.
func joinIn(t *testing.T, l *lab.Lab, w lab.Wire, settings lab.Config) (a, b *lab.Node) {
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
		for _, n := range nodes(a, b) {
			if err := n.StopDaemon(); err != nil {
				t.Error(err)
			}
		}
	})
	return a, b
}

// nodes are the two of a wire, or the one of the loopback.
func nodes(a, b *lab.Node) []*lab.Node {
	if a == b {
		return []*lab.Node{a}
	}
	return []*lab.Node{a, b}
}

// need skips a test for which a program is not installed.
func need(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skipf("%s is not installed; make deps", program)
	}
}

// pass runs a pair that has to succeed.
func pass(t *testing.T, p lab.Pair) lab.Result {
	t.Helper()
	for try := 1; ; try++ {
		r, err := p.Run()
		switch {
		case err == nil:
			return r
		case try < 5 && strings.Contains(r.Client+r.Server, "Can't produce a report"):
			// perftest's words where others took the processor while it compared
			// the cycle counter with the clock. The transfer itself went well.
			t.Logf("%v: the processor's clock could not be measured; again", p.Client)
		default:
			t.Fatalf("%v\n%v", p.Client, err)
		}
	}
}
