package faults

import (
	"testing"
	"time"

	"urdma/test/lab"
	"urdma/test/lab/labtest"
)

// linkWires are wires over a network interface whose link can be taken down.
var linkWires = []lab.Wire{lab.AFPacket, lab.AFXDP}

// TestLinkDown takes the link of a connection down for less than the death timeout, at either end: the connection
// continues and every byte is right. Traffic that doesn't need the link is not delayed. (TestLinkDownAndUp in
// test/e2e checks the events for programs.)
func TestLinkDown(t *testing.T) {
	for _, w := range linkWires {
		t.Run(w.Name, func(t *testing.T) {
			a, b := labtest.Join(t, w, lab.Config{"death_timeout_ms": 600000}) // the machine may be busy
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

// TestInterfaceGone deletes the interface of a connection: both ends get an error, at the host that lost the
// interface and at the other. Connections within either host continue.
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

// set calls ip(8) in the node's network namespace.
func set(t *testing.T, n *lab.Node, args ...string) {
	t.Helper()
	if err := n.Net.Run(append([]string{"ip"}, args...)...); err != nil {
		t.Fatal(err)
	}
}
