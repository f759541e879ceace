package qpconnect_test

import (
	"errors"
	"net/netip"
	"syscall"
	"testing"

	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/qpconnect"
	"urdma/wire"
)

// TestEitherFirst: on a network without loss, two queue pairs are connected within a few network delays after the
// second one has moved to RTR, in either order.
func TestEitherFirst(t *testing.T) {
	for _, first := range []int{0, 1} {
		for _, pause := range []clock.Time{0, 1, 5 * ms, 20 * sec} {
			w := newWorld(t, 1)
			q := []*queuePair{w.hosts[0].newQP(7), w.hosts[1].newQP(5)}
			q[first].rtr(q[1-first].end())
			w.pass(pause)
			q[1-first].rtr(q[first].end())
			start := w.now
			if !w.until(sec, func() bool { return joined(q[0], q[1]) }) || w.now-start > 7*ms {
				t.Errorf("host %d first by %d ms: %v and %v after %d µs", first, pause/ms, q[0].pair.State(), q[1].pair.State(),
					(w.now-start)/clock.Microsecond)
			}
			if w.sent[wire.OpAccept] > 2 { // a second answers a request that crossed the first
				t.Errorf("%d accepts", w.sent[wire.OpAccept])
			}
		}
	}
}

// TestOtherPeer: a queue pair is not connected with one that names another peer.
func TestOtherPeer(t *testing.T) {
	for _, wrong := range []qpconnect.End{{Addr: netip.MustParseAddr("10.0.0.1"), QPN: 8},
		{Addr: netip.MustParseAddr("10.0.0.3"), QPN: 7}} {
		w := newWorld(t, 1)
		a, b := w.hosts[0].newQP(7), w.hosts[1].newQP(5)
		a.rtr(b.end())
		b.rtr(wrong)
		w.pass(20 * sec)
		if a.pair.State() == qpconnect.Connected || b.pair.State() == qpconnect.Connected || w.sent[wire.OpAccept] != 0 {
			t.Errorf("peer %v: %v and %v", wrong, a.pair.State(), b.pair.State())
		}
	}
}

// TestPatience: posted work fails when the queue pair's time-out is over; a queue pair without work continues to send
// requests.
func TestPatience(t *testing.T) {
	w := newWorld(t, 1)
	a, idle := w.hosts[0].newQP(7), w.hosts[0].newQP(8)
	a.rtr(qpconnect.End{Addr: w.hosts[1].addr, QPN: 5})
	idle.rtr(qpconnect.End{Addr: w.hosts[1].addr, QPN: 6})
	w.pass(60 * sec)
	if a.exhausted || idle.exhausted {
		t.Fatal("no work was posted")
	}
	a.h.m.Waiting(a.pair)
	start := w.now
	if !w.until(10*sec, func() bool { return a.exhausted }) || w.now-start != a.patience {
		t.Errorf("failed %v after %d ms, patience is %d ms", a.exhausted, (w.now-start)/ms, a.patience/ms)
	}
	b := w.hosts[1].newQP(6)
	b.rtr(idle.end())
	if !w.until(sec, func() bool { return joined(idle, b) }) {
		t.Error("a peer that comes late is not joined")
	}
}

// TestLost: a queue pair whose peer ends the connection while sends are in progress is not connected to the
// peer again, and fails when its patience is over.
func TestLost(t *testing.T) {
	w := newWorld(t, 1)
	for i, b := range []*queuePair{w.hosts[1].newQP(5), w.hosts[0].newQP(6)} {
		a := w.hosts[0].newQP(uint32(7 + i))
		a.rtr(b.end())
		b.rtr(a.end())
		if !w.until(sec, func() bool { return joined(a, b) }) {
			t.Fatal("not joined")
		}
		a.sendsBegun = true
		b.reset()
		b.rtr(a.end())
		w.pass(20 * sec)
		if a.pair.State() != qpconnect.Lost || a.exhausted {
			t.Errorf("%v, failed %v", a.pair.State(), a.exhausted)
		}
		a.h.m.Waiting(a.pair)
		start := w.now
		if !w.until(10*sec, func() bool { return a.exhausted }) || w.now-start != a.patience {
			t.Errorf("failed %v after %d ms, patience is %d ms", a.exhausted, (w.now-start)/ms, a.patience/ms)
		}
		a.sendsBegun = false
		a.rtr(b.end())
		if !w.until(20*sec, func() bool { return joined(a, b) }) {
			t.Error("not joined after a reset")
		}
	}
}

// TestNoRoute: a check says that no route leads to a peer; a queue pair that is started all the same gives up when it
// has something to send.
func TestNoRoute(t *testing.T) {
	w := newWorld(t, 1)
	q := w.hosts[0].newQP(7)
	peer := qpconnect.End{Addr: netip.MustParseAddr("192.0.2.1"), QPN: 5}
	if err := q.h.m.Check(0, peer.Addr); !errors.Is(err, syscall.ETIMEDOUT) {
		t.Error(err)
	}
	q.rtr(peer)
	q.patience = sec
	q.h.m.Waiting(q.pair)
	if !w.until(20*sec, func() bool { return q.exhausted }) {
		t.Error("it waits for ever")
	}
}
