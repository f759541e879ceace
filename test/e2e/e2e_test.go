// Package e2e runs the real urdmad, joined by every kind of wire, and Debian's
// own programs on it. `make test` builds what it needs and says where that is
// by URDMA_BUILD; without it the tests are skipped. URDMA_DAEMON may name another urdmad, such as
// test/core/coreurdmad.
package e2e

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"urdma/test/lab"
	"urdma/test/lab/labtest"
)

// long tells whether the long tests were asked for.
var long = os.Getenv("URDMA_LONG") != ""

// whole skips a test of features that are attached to urdmad, or one that looks at urdmad through
// them, on a urdmad without any.
func whole(t *testing.T) {
	t.Helper()
	if lab.Core() {
		t.Skip("needs what is attached to urdmad; URDMA_DAEMON names one without")
	}
}

// share is which of the cases of a matrix a wire runs. Wires that differ in what few cases depend on run half of
// them each, so that every case meets every carrier, and every kind of port; the long tests run all on each.
type share int

const (
	every share = iota
	even        // the first, the third, …
	odd
)

// has tells whether case number i, from 0, is of the share.
func (s share) has(i int) bool { return long || s == every || i%2 == int(s-even) }

// perWire are the wires every program has to pass over.
var perWire = []lab.Wire{lab.Loopback, lab.Memif, lab.UDP, lab.TCP, lab.AFPacket, lab.AFPacketKernel, lab.AFXDP,
	lab.AFXDPKernel}

// severalWorkers are the wires that workers share. Over af_packet worker 0 asks the one queue and hands
// on what comes.
func severalWorkers() []lab.Wire {
	wires := []lab.Wire{lab.Loopback.WithWorkers(2), lab.Memif.WithWorkers(2), lab.UDP.WithWorkers(2),
		lab.TCP.WithWorkers(2)}
	if long {
		wires = append(wires, lab.AFPacket.WithWorkers(2))
	}
	return wires
}

// await waits until ok; what it says beside is for the report.
func await(t *testing.T, what string, ok func() (bool, string)) {
	t.Helper()
	for end := time.Now().Add(lab.Patience); ; time.Sleep(10 * time.Millisecond) {
		there, out := ok()
		if there {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("waited %v for %s:\n%s", lab.Patience, what, lab.Tail(out, 30))
		}
	}
}

// need skips a test for which a program is not installed.
func need(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skipf("%s is not installed; %s", program, labtest.Install(program))
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
		case try < lab.MeasuredTries && lab.Unmeasured(r.Client+r.Server):
			t.Logf("%v: the processor's clock could not be measured; again", p.Client)
		default:
			t.Fatalf("%v\n%v", p.Client, err)
		}
	}
}
