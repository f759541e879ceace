package cm_test

import (
	"testing"

	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/cm"
	"urdma/wire"
)

// TestRequestOfAnEndedConnection: a request that comes again after the id that
// was made of it has accepted and gone is no new request, and its sender hears
// that there is no connection.
func TestRequestOfAnEndedConnection(t *testing.T) {
	for _, c := range []struct {
		name string
		fn   func(e *end)
	}{
		{"destroyed", (*end).destroy},
		{"disconnected", func(e *end) { _ = e.p.h.m.Disconnect(e.id) }},
		{"queue pair destroyed", (*end).destroyQP},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, 1, options{}, options{})
			w.drop = func(op wire.TRPOp, _ *host) bool { return op == wire.OpAccept || op == wire.OpFin }
			v := w.hosts[1].newProgram()
			v.listen(7000, 8)
			requests := 0
			v.onRequest = func(e *end) {
				requests++
				e.accept(&cm.Param{})
				w.after(20*ms, func() { c.fn(e) })
			}
			e := w.hosts[0].newProgram().newEnd()
			e.connect(w.hosts[1].at(7000), &cm.Param{})
			w.pass(10 * sec)
			if requests != 1 {
				t.Errorf("one request was %d events", requests)
			}
			if e.heard() != "ADDR_RESOLVED ROUTE_RESOLVED REJECTED" {
				t.Errorf("the requester heard %q", e.heard())
			}
		})
	}
}

// TestBacklog: requests past the backlog wait, and are heard when there is room.
func TestBacklog(t *testing.T) {
	bothWays(t, func(t *testing.T, sameHost bool) {
		p := newPair(t, sameHost, 2, options{timeout: 20 * sec})
		for range 5 {
			p.from.newProgram().newEnd().connect(p.to.at(served), &cm.Param{})
		}
		p.pass(3 * sec)
		if len(p.requests) != 2 {
			t.Fatalf("%d requests, the backlog is 2", len(p.requests))
		}
		p.requests[0].accept(&cm.Param{})
		p.requested(3, 2*sec)
		p.requests[1].reject("")
		p.requested(4, 2*sec)
		p.requests[2].destroy()
		p.requested(5, 2*sec)
	})
}

// TestBacklogForEver: a listener that never answers makes the requester give up.
func TestBacklogForEver(t *testing.T) {
	bothWays(t, func(t *testing.T, sameHost bool) {
		p := newPair(t, sameHost, 1, options{timeout: 2 * sec})
		p.connect()
		p.requested(1, sec)
		e := p.from.newProgram().newEnd()
		e.connect(p.to.at(served), &cm.Param{})
		p.hears(e, cm.EventUnreachable, 4*sec)
	})
}

// TestListenerComesBack: for two seconds a port number whose listener left does
// not refuse, so that the next listener hears the request; then it does.
func TestListenerComesBack(t *testing.T) {
	for _, away := range []clock.Time{0, 1500 * ms, 2500 * ms} {
		bothWays(t, func(t *testing.T, sameHost bool) {
			p := newPair(t, sameHost, 1, options{})
			p.listener.destroy()
			p.connect()
			p.pass(away)
			if away > 2*sec {
				p.hears(p.active, cm.EventRejected, sec)
				return
			}
			p.listener = p.server.listen(served, 1)
			p.requested(1, sec)
		})
	}
}

// TestListenerIsExpected: a port number that never had a listener does not
// refuse while one is about to come, which hears of each request.
func TestListenerIsExpected(t *testing.T) {
	bothWays(t, func(t *testing.T, sameHost bool) {
		asked := 0
		p := newPair(t, sameHost, 1, options{expected: func(port uint16) bool {
			asked++
			return port == unserved
		}})
		requests := 0
		p.server.onRequest = func(*end) { requests++ }
		p.active.connect(p.to.at(unserved), &cm.Param{})
		p.pass(40 * ms)
		if asked != 1 {
			t.Errorf("asked %d times for one request", asked)
		}
		p.server.listen(unserved, 1)
		p.pass(sec)
		if requests != 1 {
			t.Errorf("the listener heard %d requests", requests)
		}
	})
}

// TestListenerIsBound: for two seconds a port number that an id has been bound to
// does not refuse, as that id may listen yet; then it does.
func TestListenerIsBound(t *testing.T) {
	for _, later := range []clock.Time{0, 1500 * ms, 2500 * ms} {
		bothWays(t, func(t *testing.T, sameHost bool) {
			p := newPair(t, sameHost, 1, options{})
			e := p.server.newEnd()
			p.must(p.to.m.Bind(e.id, p.to.at(unserved)))
			p.active.connect(p.to.at(unserved), &cm.Param{})
			p.pass(later)
			if later > 2*sec {
				p.hears(p.active, cm.EventRejected, sec)
				return
			}
			p.must(p.to.m.Listen(e.id, 1))
			p.requested(1, sec)
		})
	}
}

// TestNobodyListens: a port number that never had a listener refuses at once.
func TestNobodyListens(t *testing.T) {
	bothWays(t, func(t *testing.T, sameHost bool) {
		p := newPair(t, sameHost, 1, options{})
		p.active.connect(p.to.at(unserved), &cm.Param{})
		p.hears(p.active, cm.EventRejected, 20*ms)
	})
}

// TestOwnerRefuses: a client that is going takes no more requests.
func TestOwnerRefuses(t *testing.T) {
	for sameHost, want := range map[bool]cm.EventKind{true: cm.EventRejected, false: cm.EventUnreachable} {
		p := newPair(t, sameHost, 1, options{timeout: sec})
		p.server.refuses = true
		p.connect()
		p.hears(p.active, want, 2*sec)
		p.active.destroy()
		p.listener.destroy()
		p.pass(3 * sec)
		p.checkEmpty()
	}
}

// TestSilence: a manager that is to end says nothing more.
func TestSilence(t *testing.T) {
	p := newPair(t, true, 1, options{})
	p.connect()
	b := p.requested(1, sec)
	b.accept(&cm.Param{})
	p.hears(p.active, cm.EventEstablished, sec)
	p.from.m.Silence()
	b.destroyQP()
	p.pass(sec)
	if p.active.event(cm.EventDisconnected) != nil {
		t.Error("an event came after Silence")
	}
}
