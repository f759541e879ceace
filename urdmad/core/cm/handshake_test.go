package cm_test

import (
	"syscall"
	"testing"

	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/cm"
	"urdma/wire"
)

// pair is a requester on one host and a listener on another, or on the same.
type pair struct {
	*world
	from, to *host
	server   *program
	listener *end
	active   *end
	requests []*end
}

// newPair makes them; the listener listens on served, and nobody has connected.
func newPair(t *testing.T, sameHost bool, backlog int, o options) *pair {
	w := newWorld(t, 1, o, o)
	p := &pair{world: w, from: w.hosts[0], to: w.hosts[1]}
	if sameHost {
		p.to = p.from
	}
	p.server = p.to.newProgram()
	p.server.onRequest = func(e *end) { p.requests = append(p.requests, e) }
	p.listener = p.server.listen(served, backlog)
	p.active = p.from.newProgram().newEnd()
	return p
}

// bothWays runs a test between two hosts and within one.
func bothWays(t *testing.T, fn func(t *testing.T, sameHost bool)) {
	t.Run("two hosts", func(t *testing.T) { fn(t, false) })
	t.Run("same host", func(t *testing.T) { fn(t, true) })
}

func (p *pair) connect() { p.active.connect(p.to.at(served), &cm.Param{PrivateData: []byte("hi")}) }

// requested waits for n requests in all and returns the last.
func (p *pair) requested(n int, limit clock.Time) *end {
	p.t.Helper()
	p.until("connection request", limit, func() bool { return len(p.requests) >= n })
	return p.requests[n-1]
}

// hears waits for an event of an end and returns how long that took.
func (p *pair) hears(e *end, kind cm.EventKind, limit clock.Time) clock.Time {
	p.t.Helper()
	start := p.now
	p.until(kind.String(), limit, func() bool { return e.event(kind) != nil })
	return p.now - start
}

// dropFirst loses the first n packets of an opcode.
func (p *pair) dropFirst(op wire.TRPOp, n int) {
	p.drop = func(o wire.TRPOp, _ *host) bool {
		if o != op || n == 0 {
			return false
		}
		n--
		return true
	}
}

// TestLostPackets: every packet of the handshake may be lost, several times, and is repeated by the side
// that waits for an answer, after 50, 100, 200 ms.
func TestLostPackets(t *testing.T) {
	for _, c := range []struct {
		op     wire.TRPOp
		reject bool
	}{{wire.OpRequest, false}, {wire.OpAccept, false}, {wire.OpData, false}, {wire.OpReject, true}} {
		t.Run(c.op.String(), func(t *testing.T) {
			p := newPair(t, false, 1, options{})
			p.dropFirst(c.op, 3)
			p.connect()
			b := p.requested(1, sec)
			if c.reject {
				b.reject("no")
				p.hears(p.active, cm.EventRejected, 400*ms)
				return
			}
			b.accept(&cm.Param{})
			p.hears(b, cm.EventEstablished, 400*ms)
			p.pass(10 * sec)
			if p.active.heard() != "ADDR_RESOLVED ROUTE_RESOLVED ESTABLISHED" || b.heard() != "ESTABLISHED" ||
				len(p.requests) != 1 {
				t.Errorf("heard %q and %q, %d requests", p.active.heard(), b.heard(), len(p.requests))
			}
		})
	}
}

// TestAcceptIsRepeatedAlone: a passive end repeats its accept also when no
// request comes again.
func TestAcceptIsRepeatedAlone(t *testing.T) {
	p := newPair(t, false, 1, options{})
	p.connect()
	b := p.requested(1, sec)
	accepts := 0
	p.drop = func(op wire.TRPOp, _ *host) bool {
		if op == wire.OpAccept {
			accepts++
		}
		return op == wire.OpRequest || op == wire.OpAccept && accepts < 4
	}
	b.accept(&cm.Param{})
	if took := p.hears(p.active, cm.EventEstablished, sec); took < 350*ms || took > 360*ms {
		t.Errorf("the fourth accept came after %d ms", took/ms)
	}
}

// asks makes a request with a PSN arrive.
func (p *pair) asks(isn wire.PSN, body []byte) {
	p.to.message(p.from.at(60000), p.to.at(served), wire.TRP{Op: wire.OpRequest, PSN: isn}, body)
}

// offer is a request or an accept with values that connections can keep to.
var offer = wire.TRPConnect{HasExt: true, Ext: wire.TRPExtension{MaxSegment: 1400, RecvWindow: 64}}

// body returns the part of a request or accept after its header.
func body(t *testing.T, c wire.TRPConnect) []byte {
	b := make([]byte, c.Len())
	if _, err := c.Put(b); err != nil {
		t.Fatal(err)
	}
	return b
}

// TestRequestComesAgain: a copy of a request is no event; it is answered with
// the accept if there is one, and waits otherwise.
func TestRequestComesAgain(t *testing.T) {
	p := newPair(t, false, 2, options{})
	b := body(t, offer)
	for range 3 {
		p.asks(5, b)
	}
	if len(p.requests) != 1 || p.parts[wire.OpAccept] != 0 {
		t.Fatalf("%d requests, %d accepts", len(p.requests), p.parts[wire.OpAccept])
	}
	p.requests[0].accept(&cm.Param{})
	p.asks(5, b)
	if len(p.requests) != 1 || p.parts[wire.OpAccept] != 2 {
		t.Errorf("%d requests, %d accepts", len(p.requests), p.parts[wire.OpAccept])
	}
	p.asks(6, b)
	if len(p.requests) != 2 {
		t.Errorf("a request with another ISN was taken for the first one")
	}
}

// TestUnwantedAccept: an accept that comes when its requester has gone is
// refused at once.
func TestUnwantedAccept(t *testing.T) {
	for name, leave := range map[string]func(*end){"id destroyed": (*end).destroy,
		"queue pair destroyed": (*end).destroyQP} {
		t.Run(name, func(t *testing.T) {
			bothWays(t, func(t *testing.T, sameHost bool) {
				p := newPair(t, sameHost, 1, options{})
				p.connect()
				b := p.requested(1, sec)
				leave(p.active)
				b.accept(&cm.Param{})
				p.hears(b, cm.EventConnectError, 10*ms)
				p.pass(sec)
				if e := p.active; !e.destroyed && e.event(cm.EventConnectError) == nil {
					t.Errorf("the active end heard %q", e.heard())
				}
			})
		})
	}
}

// TestForeignAnswers: accepts and rejects that answer another request, or come
// from another host, change nothing.
func TestForeignAnswers(t *testing.T) {
	p := newPair(t, false, 1, options{})
	p.connect()
	p.requested(1, sec)
	var c *conn
	for _, c = range p.from.conns {
	}
	for _, op := range []wire.TRPOp{wire.OpAccept, wire.OpReject} {
		for _, from := range []*host{p.from, p.to} {
			ack := c.isn
			if from == p.to {
				ack++
			}
			p.from.message(from.at(60000), p.from.at(c.port), wire.TRP{Op: op, PSN: 9, Ack: ack}, body(t, offer))
		}
	}
	p.requests[0].accept(&cm.Param{})
	p.hears(p.requests[0], cm.EventEstablished, sec)
	p.hears(p.active, cm.EventEstablished, sec)
}

// TestInvalidExtension: no block, and values that no connection can keep to, end the
// handshake on both sides at once.
func TestInvalidExtension(t *testing.T) {
	for name, c := range map[string]wire.TRPConnect{
		"none":    {},
		"segment": {HasExt: true, Ext: wire.TRPExtension{MaxSegment: 127, RecvWindow: 1}},
		"window":  {HasExt: true, Ext: wire.TRPExtension{MaxSegment: 128}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t, false, 1, options{})
			b := body(t, c)
			p.asks(5, b)
			if len(p.requests) != 0 || p.parts[wire.OpReject] != 1 {
				t.Errorf("%d requests, %d rejects", len(p.requests), p.parts[wire.OpReject])
			}
			p.connect()
			p.requested(1, sec)
			for port, c := range p.from.conns {
				p.from.message(p.to.at(60000), p.from.at(port), wire.TRP{Op: wire.OpAccept, PSN: 9, Ack: c.isn}, b)
			}
			if ev := p.active.event(cm.EventConnectError); ev == nil || ev.Err != syscall.EPROTO || p.parts[wire.OpFin] != 1 {
				t.Errorf("the active end heard %q, %d fins", p.active.heard(), p.parts[wire.OpFin])
			}
		})
	}
}

// TestSlowProgram: a program may take minutes to accept or reject, and its host
// says as often as it is asked that the request has come; when the host falls
// silent, or is one that can't say so, the time limit holds.
func TestSlowProgram(t *testing.T) {
	const limit = 4 * sec
	for _, reject := range []bool{false, true} {
		p := newPair(t, false, 1, options{timeout: limit})
		p.connect()
		b := p.requested(1, sec)
		p.pass(300 * sec)
		if got := p.active.heard(); got != "ADDR_RESOLVED ROUTE_RESOLVED" {
			t.Fatalf("heard %q while the program thinks", got)
		}
		if n := p.parts[wire.OpRetry]; n < 290 || n > 340 {
			t.Errorf("%d answers to some 300 copies of the request", n)
		}
		if reject {
			b.reject("no")
			p.hears(p.active, cm.EventRejected, 2*sec)
			continue
		}
		b.accept(&cm.Param{})
		p.hears(b, cm.EventEstablished, 2*sec)
		p.hears(p.active, cm.EventEstablished, 2*sec)
	}
	for _, cut := range []bool{true, false} {
		p := newPair(t, false, 1, options{timeout: limit})
		p.drop = func(op wire.TRPOp, _ *host) bool { return op == wire.OpRetry && !cut }
		p.connect()
		p.requested(1, sec)
		p.pass(2 * sec)
		p.from.cut = cut
		start := p.now
		p.hears(p.active, cm.EventUnreachable, 20*sec)
		if took := p.now - start; took > limit+sec {
			t.Errorf("cut %v: gave up after %d ms of silence", cut, took/ms)
		}
	}
}

// TestWaitEnds: however often a host says that the request has come, it holds the
// requester's id and port number for an hour and no longer. So does a program of our own.
func TestWaitEnds(t *testing.T) {
	bothWays(t, func(t *testing.T, sameHost bool) {
		p := newPair(t, sameHost, 1, options{timeout: 4 * sec})
		p.connect()
		b := p.requested(1, sec)
		p.pass(3590 * sec)
		if got := p.active.heard(); got != "ADDR_RESOLVED ROUTE_RESOLVED" {
			t.Fatalf("heard %q within the hour", got)
		}
		p.hears(p.active, cm.EventUnreachable, 15*sec)
		if last := p.active.events[len(p.active.events)-1]; last.Err != syscall.ETIMEDOUT || len(p.from.conns) != 0 {
			t.Errorf("heard %v, and %d connections are left", last.Err, len(p.from.conns))
		}
		b.accept(&cm.Param{}) // too late: its peer says so
		p.hears(b, cm.EventConnectError, 2*sec)
		if len(p.requests) != 1 {
			t.Errorf("%d requests of one", len(p.requests))
		}
	})
}

// TestEndIsRemembered: the request of a connection that ended soon after its accept, however late the
// accept was sent, may be repeated and does not count as a new request. A connection that ended later is
// not remembered.
func TestEndIsRemembered(t *testing.T) {
	p := newPair(t, false, 1, options{timeout: 4 * sec})
	p.connect()
	b := p.requested(1, sec)
	p.pass(60 * sec)
	p.drop = func(op wire.TRPOp, _ *host) bool { return op == wire.OpAccept }
	b.accept(&cm.Param{})
	p.pass(10 * ms)
	b.destroy()
	p.hears(p.active, cm.EventRejected, 2*sec)
	if len(p.requests) != 1 {
		t.Errorf("%d requests of one", len(p.requests))
	}
	p = newPair(t, false, 1, options{timeout: 4 * sec})
	p.connect()
	b = p.requested(1, sec)
	b.accept(&cm.Param{})
	p.hears(b, cm.EventEstablished, sec)
	p.pass(60 * sec)
	before := p.to.m.Len()
	b.destroy()
	if n := p.to.m.Len() - before; n >= 0 {
		t.Errorf("%d entries more after the end", n)
	}
}

// TestTimeouts: unanswered requests end with UNREACHABLE after their time, and an accepted connection that
// was never established leaves no state.
func TestTimeouts(t *testing.T) {
	for _, limit := range []clock.Time{700 * ms, 3 * sec, 9 * sec} {
		p := newPair(t, false, 1, options{timeout: limit})
		p.connect()
		b := p.requested(1, sec)
		p.from.cut, p.to.cut = true, true
		b.accept(&cm.Param{})
		start := p.now
		p.hears(b, cm.EventUnreachable, 20*sec)
		p.hears(p.active, cm.EventUnreachable, 20*sec)
		for i, e := range []*end{p.active, b} {
			last := e.events[len(e.events)-1]
			if took := p.now - start; last.Err != syscall.ETIMEDOUT || took < limit-2*ms || took > limit+sec {
				t.Errorf("end %d heard %v (%v) after %d ms of %d", i, last.Kind, last.Err, took/ms, limit/ms)
			}
		}
		p.active.destroy()
		b.destroy()
		p.listener.destroy()
		p.pass(10 * sec)
		p.checkEmpty()
	}
}

// TestSetTimeout: a new time limit holds for handshakes under way.
func TestSetTimeout(t *testing.T) {
	p := newPair(t, false, 1, options{timeout: 60 * sec})
	p.connect()
	p.requested(1, sec)
	p.from.cut, p.to.cut = true, true
	p.pass(2 * sec)
	p.from.m.SetTimeout(sec)
	p.hears(p.active, cm.EventUnreachable, sec)
}
