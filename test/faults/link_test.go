package faults

import (
	"testing"
	"time"

	"urdma/test/lab"
	"urdma/test/lab/labtest"
)

// linkWires are those over a network interface that can be taken.
var linkWires = []lab.Wire{lab.AFPacket, lab.AFXDP}

// TestLinkDown takes the link below a connection for less than the death timeout,
// at either end: the connection stands and every byte is right; what doesn't need
// the link doesn't wait for it. (That programs are told is TestLinkDownAndUp's in
// test/e2e.)
func TestLinkDown(t *testing.T) {
	for _, w := range linkWires {
		t.Run(w.Name, func(t *testing.T) {
			a, b := labtest.Join(t, w, lab.Config{"death_timeout_ms": 600000}) // of a busy machine
			across, within := pair(t, a, b), pair(t, a, a)
			across.advances("at the beginning")
			for _, n := range []*lab.Node{a, b} {
				set(t, n, "link", "set", "veth0", "down")
				time.Sleep(300 * time.Millisecond)
				within.advances("with the link down")
				set(t, n, "link", "set", "veth0", "up")
				across.advances("with the link up again")
			}
		})
	}
}

// TestInterfaceGone deletes the interface below a connection: both ends of it get
// an error, at the host that lost the interface and at the other; connections
// within either host go on.
func TestInterfaceGone(t *testing.T) {
	for _, w := range linkWires {
		t.Run(w.Name, func(t *testing.T) {
			a, b := labtest.Join(t, w, lab.Config{"death_timeout_ms": 1000})
			across, back := pair(t, a, b), pair(t, b, a)
			within := []*checked{pair(t, a, a), pair(t, b, b)}
			across.advances("at the beginning")
			back.advances("at the beginning")
			set(t, a, "link", "delete", "veth0")
			across.breaks(patience)
			back.breaks(patience)
			running(t, a, b)
			for _, p := range within {
				p.advances("without an interface")
			}
		})
	}
}

// set calls ip(8) in the node's network.
func set(t *testing.T, n *lab.Node, args ...string) {
	t.Helper()
	if err := n.Net.Run(append([]string{"ip"}, args...)...); err != nil {
		t.Fatal(err)
	}
}
