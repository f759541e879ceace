// Package e2e runs real urdmads, joined by every kind of wire, and Debian's own programs on them. `make test` builds
// the programs and passes their directory in URDMA_BUILD; without it the tests are skipped. URDMA_DAEMON may name
// another urdmad, such as test/core/coreurdmad.
package e2e

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"urdma/test/lab"
	"urdma/test/lab/labtest"
)

// long reports whether the long tests were requested.
var long = os.Getenv("URDMA_LONG") != ""

// whole skips a test on a urdmad without attached features. Such a test is about an attached feature, or uses one to
// look at urdmad.
func whole(t *testing.T) {
	t.Helper()
	if lab.Core() {
		t.Skip("needs what is attached to urdmad; URDMA_DAEMON names one without")
	}
}

// share says which cases of a matrix run on a wire: all if of is 0, else one case of every so many, beginning with
// part. Similar wires share the cases, so that every case runs on every carrier and every kind of port. The long tests
// run all cases on each wire.
type share struct{ part, of int }

var (
	every share
	even  = share{0, 2} // the first, the third, …
	odd   = share{1, 2}
)

// fourth returns a fourth of the cases; part counts from 0.
func fourth(part int) share { return share{part, 4} }

// has reports whether case number i, from 0, is in the share.
func (s share) has(i int) bool { return long || s.of == 0 || i%s.of == s.part }

// perWire are the wires on which every program must work.
var perWire = []lab.Wire{lab.Loopback, lab.Memif, lab.UDP, lab.TCP, lab.AFPacket, lab.AFPacketKernel, lab.AFXDP,
	lab.AFXDPKernel}

// severalWorkers are wires with several workers. With af_packet worker 0 polls the only queue and passes packets on.
func severalWorkers() []lab.Wire {
	wires := []lab.Wire{lab.Loopback.WithWorkers(2), lab.Memif.WithWorkers(2), lab.UDP.WithWorkers(2),
		lab.TCP.WithWorkers(2)}
	if long {
		wires = append(wires, lab.AFPacket.WithWorkers(2))
	}
	return wires
}

// await waits until ok; the other result is for the error message.
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

// need skips a test if a program is not installed.
func need(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skipf("%s is not installed; %s", program, labtest.Install(program))
	}
}

// pass runs a pair that must succeed.
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
