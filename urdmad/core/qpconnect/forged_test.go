package qpconnect_test

import (
	"net/netip"
	"testing"

	"urdma/urdmad/core/cm"
	"urdma/urdmad/core/handshake"
	"urdma/urdmad/core/qpconnect"
	"urdma/wire"
)

// TestForgedRequests: each request that seems to come from the peer causes one packet of equal length, never an
// accept, with or without a connection, and ends no connection.
func TestForgedRequests(t *testing.T) {
	const forged = 2000
	for _, connected := range []bool{false, true} {
		for _, higher := range []int{0, 1} {
			w := newWorld(t, uint64(higher))
			a, b := w.hosts[0].newQP(7), w.hosts[1].newQP(7)
			victim, peer := b, a
			if higher == 0 {
				victim, peer = a, b
			}
			victim.rtr(peer.end())
			if connected {
				peer.rtr(victim.end())
				if !w.until(sec, func() bool { return joined(a, b) }) {
					t.Fatal("no connection")
				}
			} else {
				w.pass(10 * ms)
			}
			clear(w.sent)
			w.loss = 1
			for range forged {
				victim.h.m.Request(&cm.Message{Link: peer.h.addr, Local: netip.AddrPortFrom(victim.h.addr, qpconnect.UDPPort),
					Peer: netip.AddrPortFrom(peer.h.addr, uint16(w.rand.Uint32())), Number: w.rand.Uint32(), QPN: peer.n,
					ByNumber: handshake.ByNumber{Cookie: w.rand.Uint32(), Target: victim.n, Echo: w.rand.Uint32()}})
			}
			if n := w.sent[wire.OpRequest]; n == 0 || n > forged || w.sent[wire.OpAccept] != 0 {
				t.Errorf("connected %v, victim %d: %d forged requests drew %v", connected, higher, forged, w.sent)
			}
			if connected && !joined(a, b) {
				t.Error("the connection is gone")
			}
		}
	}
}

// TestForgedLink: a request with a forged source address does not redirect the handshake's packets to the
// peer.
func TestForgedLink(t *testing.T) {
	for _, early := range []bool{false, true} { // before the victim has a route to its peer
		w := newWorld(t, 1)
		victim, peer := w.hosts[0].newQP(7), w.hosts[1].newQP(7)
		victim.rtr(peer.end())
		if !early {
			w.pass(10 * ms)
		}
		p := &cm.Message{Link: netip.MustParseAddr("192.0.2.1"),
			Local: netip.AddrPortFrom(victim.h.addr, qpconnect.UDPPort), Peer: netip.AddrPortFrom(peer.h.addr, 5), QPN: peer.n,
			ByNumber: handshake.ByNumber{Cookie: 6, Target: victim.n}}
		before := w.sent[wire.OpRequest]
		victim.h.m.Request(p) // the test fails if a packet uses another link than the peer's
		w.pass(sec)
		if w.sent[wire.OpRequest] == before {
			t.Error("nothing was sent")
		}
	}
}
