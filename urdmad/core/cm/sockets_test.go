package cm_test

import (
	"net/netip"
	"syscall"
	"testing"

	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/cm"
	"urdma/urdmad/core/handshake"
)

// stream is a connection by which a request came.
type stream struct {
	*conn
	rejected, released, withdrawn bool
}

func (s *stream) Release()        { s.released = true }
func (s *stream) Withdrawn() bool { return s.withdrawn }

func (s *stream) Adopt(id *cm.ID) error {
	s.id = id
	return nil
}

func (s *stream) Send(p *cm.Message) { s.rejected = s.rejected || p.Kind == handshake.Reject }

// arrives has a request come by a connection of its own.
func (p *pair) arrives(port uint16) *stream { return p.arrivesFrom(p.from.addr, port) }

func (p *pair) arrivesFrom(peer netip.Addr, port uint16) *stream {
	s := &stream{conn: &conn{h: p.to, port: port, peer: netip.AddrPortFrom(peer, 40000)}}
	s.timer = clock.NewTimer(s.tick)
	p.to.m.Receive(s, &cm.Message{Local: p.to.at(port), Peer: s.peer})
	return s
}

// TestBoundSockets: a port number that a socket of another program has can be neither bound to
// nor chosen, and a bound id's is open until it is to connect, or is destroyed.
func TestBoundSockets(t *testing.T) {
	p := newPair(t, false, 1, options{})
	h := p.to
	h.foreign = map[uint16]bool{7777: true, 49152: true, 49153: true}
	e := p.server.newEnd()
	if err := h.m.Bind(e.id, h.at(7777)); err != syscall.EADDRINUSE {
		t.Errorf("bound to another's port number: %v", err)
	}
	p.must(h.m.Bind(e.id, h.at(0)))
	local, _ := e.id.Bound()
	if h.foreign[local.Port()] || h.sockets[local.Port()] != 1 {
		t.Errorf("bound to %v, sockets %v", local, h.sockets)
	}
	p.must(h.m.ResolveAddr(e.id, netip.AddrPort{}, p.from.at(served), sec))
	if h.sockets[local.Port()] != 0 {
		t.Errorf("an id that is to connect leaves sockets %v", h.sockets)
	}
	e = p.server.newEnd()
	p.must(h.m.Bind(e.id, h.at(7778)))
	e.destroy()
	if h.sockets[7778] != 0 {
		t.Errorf("a destroyed id leaves sockets %v", h.sockets)
	}
}

// TestSocketsOfListeners: a listener's socket stays for the next one of its owner, but not
// once the owner has gone.
func TestSocketsOfListeners(t *testing.T) {
	for _, gone := range []bool{false, true} {
		p := newPair(t, false, 1, options{})
		if p.to.sockets[served] != 1 {
			t.Fatalf("sockets %v", p.to.sockets)
		}
		p.listener.destroy()
		want := 1
		if gone {
			if p.to.m.Gone(p.server) {
				t.Error("one socket takes more than one turn")
			}
			want = 0
		}
		if p.to.sockets[served] != want {
			t.Errorf("owner gone: %v, sockets %v", gone, p.to.sockets)
		}
		p.pass(3 * sec)
		if p.to.sockets[served] != 0 {
			t.Errorf("left for ever: %v", p.to.sockets)
		}
	}
}

// TestManySockets: of the sockets that an owner leaves a turn closes some.
func TestManySockets(t *testing.T) {
	const listeners, most = 200, 64
	p := newPair(t, false, 1, options{})
	p.listener.destroy()
	for i := range listeners - 1 {
		e := p.server.newEnd()
		p.must(p.to.m.Bind(e.id, p.to.at(uint16(10000+i))))
		p.must(p.to.m.Listen(e.id, 1))
		e.destroy()
	}
	for left, more := listeners, true; more; {
		more = p.to.m.Gone(p.server)
		now := 0
		for _, n := range p.to.sockets {
			now += n
		}
		if left-now > most || more == (now == 0) {
			t.Fatalf("%d of %d sockets are closed, more to come: %v", left-now, left, more)
		}
		left = now
	}
}

// TestRequestsThatArrive wait for a listener that may come, and for room in its backlog;
// where none comes they are refused.
func TestRequestsThatArrive(t *testing.T) {
	p := newPair(t, false, 1, options{timeout: 5 * sec})
	if nobody := p.arrives(unserved); !nobody.rejected {
		t.Error("not rejected where nobody is")
	}
	first, second := p.arrives(served), p.arrives(served)
	p.requested(1, sec)
	p.pass(sec)
	if len(p.requests) != 1 {
		t.Fatalf("%d requests, the backlog is 1", len(p.requests))
	}
	p.requests[0].reject("")
	p.requested(2, sec)
	p.requests[1].reject("")
	if !first.rejected || !second.rejected {
		t.Error("rejects were not sent")
	}
	e := p.server.newEnd()
	p.must(p.to.m.Bind(e.id, p.to.at(unserved)))
	early := p.arrives(unserved)
	p.pass(3 * sec)
	if !early.rejected {
		t.Error("not rejected where an id was bound that does not listen")
	}
	early = p.arrives(unserved)
	if !early.rejected {
		t.Error("not rejected at once")
	}
}

// TestFloodedListener: requests that wait at a listener without room are bounded, and keep
// those for others and those of others from nothing.
func TestFloodedListener(t *testing.T) {
	const most = 1024 // that wait
	p := newPair(t, false, 1, options{timeout: 5 * sec})
	e := p.server.newEnd()
	p.must(p.to.m.Bind(e.id, p.to.at(unserved)))
	p.must(p.to.m.Listen(e.id, 1))
	var flood []*stream
	for range 1 + most { // one of them fills the backlog
		if flood = append(flood, p.arrives(unserved)); flood[len(flood)-1].rejected {
			t.Fatal("rejected while there was room to wait")
		}
	}
	other := p.arrivesFrom(netip.MustParseAddr("192.0.2.9"), unserved)
	for _, late := range []*stream{p.arrives(unserved), p.arrives(unserved), other} {
		if late.rejected {
			t.Error("the last to come finds no place")
		}
	}
	if !flood[1].rejected || !flood[2].rejected || !flood[3].rejected || flood[4].rejected {
		t.Errorf("not the first three of more than %d that wait were rejected", most)
	}
	for _, s := range flood[4:] {
		s.withdrawn = true
	}
	p.pass(20 * ms)
	if last := flood[most]; !last.released || last.rejected {
		t.Error("a request whose peer has gone still waits")
	}
	if p.arrives(unserved).rejected {
		t.Error("those of peers that have gone keep others from waiting")
	}
	if p.arrives(served).rejected {
		t.Error("a listener with room is refused a request, since another's wait")
	}
	p.requested(2, sec)
	if other.rejected {
		t.Error("one source keeps another from waiting")
	}
}
