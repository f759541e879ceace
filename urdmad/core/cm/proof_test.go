package cm_test

import (
	"net/netip"
	"testing"

	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/cm"
	"urdma/wire"
)

// account counts the bytes of IP packets that a host received from an address and sent to it.
type account struct{ in, out int }

const ipHeaders = 28

// forger is an attacker who sends requests from addresses of others, and never sees an answer.
type forger struct {
	*world
	to       *host
	accounts map[netip.AddrPort]*account
	private  int // most bytes of private data
}

// newForger counts all that goes to forged addresses.
func newForger(w *world, to *host) *forger {
	f := &forger{world: w, to: to, accounts: map[netip.AddrPort]*account{}}
	w.sent = func(d datagram) {
		if a := f.accounts[d.to]; a != nil {
			a.out += ipHeaders + len(d.payload)
			if a.out > 3*a.in {
				w.t.Errorf("%d bytes went to %v, which seemed to send %d", a.out, d.to, a.in)
			}
		}
	}
	return f
}

// forge sends one request, now and then another copy of it, and now and then
// with a token that is guessed.
func (f *forger) forge() {
	from := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(100 + f.rand.IntN(100))}),
		uint16(1024+f.rand.IntN(60000)))
	c := wire.TRPConnect{PrivateData: make([]byte, f.rand.IntN(1+f.private)), HasExt: true,
		Ext: wire.TRPExtension{Cookie: 1, MaxSegment: 1400, RecvWindow: 64}}
	if f.rand.IntN(4) == 0 {
		c.Ext.Echo = f.rand.Uint32()
	}
	t := wire.TRP{Op: wire.OpRequest, PSN: wire.PSN(f.rand.Uint32())}
	b := make([]byte, wire.TRPLen+c.Len())
	at := t.Put(b)
	if _, err := c.Put(b[at:]); err != nil {
		f.t.Fatal(err)
	}
	a := f.accounts[from]
	if a == nil {
		a = &account{}
		f.accounts[from] = a
	}
	for range 1 + f.rand.IntN(2) {
		a.in += ipHeaders + len(b)
		f.to.receive(datagram{from, f.to.at(served), b})
	}
}

// flood forges n requests, one after every pause.
func (f *forger) flood(n int, pause clock.Time) {
	if n > 0 {
		f.forge()
		f.after(pause, func() { f.flood(n-1, pause) })
	}
}

// answers describes a server's answers to forged requests.
func (f *forger) answer(e *end) {
	switch f.rand.IntN(4) {
	case 0:
		e.reject(string(make([]byte, wire.MaxPrivateData)))
	case 1: // undecided for a while
		f.after(sec, func() { e.destroyOnce() })
	default:
		e.accept(&cm.Param{PrivateData: make([]byte, f.rand.IntN(wire.MaxPrivateData+1))})
	}
}

// TestForgedRequests: a flood from forged addresses draws at most three bytes
// for each of its own towards any address, and peers that prove theirs are
// served in the midst of it.
func TestForgedRequests(t *testing.T) {
	for seed := range uint64(6) {
		w := newWorld(t, seed, options{timeout: 8 * sec}, options{timeout: 8 * sec})
		f := newForger(w, w.hosts[1])
		f.private = int(seed%3) * wire.MaxPrivateData / 2
		server := w.hosts[1].newProgram()
		server.onRequest = func(e *end) {
			if string(e.request.Param.PrivateData) == "honest" {
				e.accept(&cm.Param{PrivateData: make([]byte, wire.MaxPrivateData)})
				return
			}
			w.after(ms, func() { f.answer(e) })
		}
		server.listen(served, 32)
		f.flood(4000, ms)
		w.pass(sec)
		var honest []*end
		for range 10 {
			e := w.hosts[0].newProgram().newEnd()
			e.connect(w.hosts[1].at(served), &cm.Param{PrivateData: []byte("honest")})
			honest = append(honest, e)
		}
		w.pass(3 * sec)
		for i, e := range honest {
			if e.event(cm.EventEstablished) == nil {
				t.Errorf("seed %d: honest peer %d heard %q", seed, i, e.heard())
			}
		}
		if t.Failed() {
			t.FailNow()
		}
	}
}

// TestLongAnswers: private data longer than three times the received bytes reach the peer at once.
func TestLongAnswers(t *testing.T) {
	for _, reject := range []bool{false, true} {
		p := newPair(t, false, 4, options{})
		p.connect()
		b := p.requested(1, sec)
		want := string(make([]byte, wire.MaxPrivateData))
		kind := cm.EventEstablished
		if reject {
			kind = cm.EventRejected
			b.reject(want)
		} else {
			b.accept(&cm.Param{PrivateData: []byte(want)})
		}
		p.hears(p.active, kind, 10*ms)
		if ev := p.active.event(kind); string(ev.Param.PrivateData) != want {
			t.Errorf("reject %v: %d bytes of private data", reject, len(ev.Param.PrivateData))
		}
	}
}

// TestToken: a token is good for the request that it was made for, and for a
// while.
func TestToken(t *testing.T) {
	p := newPair(t, false, 2, options{})
	var token uint32
	p.sent = func(d datagram) {
		var c wire.TRPConnect
		if d.payload[8]>>4 == byte(wire.OpRetry) && c.Parse(d.payload[wire.TRPLen:]) == nil {
			token = c.Ext.Echo
		}
	}
	ask := func(isn wire.PSN, from *host, echo uint32) int {
		p.to.message(from.at(60000), p.to.at(served), wire.TRP{Op: wire.OpRequest, PSN: isn},
			body(t, wire.TRPConnect{HasExt: true, Ext: wire.TRPExtension{MaxSegment: 1400, RecvWindow: 64, Echo: echo}}))
		return len(p.requests)
	}
	if n := ask(1, p.from, 0); n != 1 || token != 0 {
		t.Fatalf("%d requests, token %x", n, token)
	}
	if n := ask(2, p.from, 0); n != 1 || token == 0 {
		t.Fatalf("a second of two: %d requests, token %x", n, token)
	}
	good := token
	for what, n := range map[string]int{"another request's": ask(3, p.from, good), "another host's": ask(2, p.to, good),
		"a wrong": ask(2, p.from, good+1)} {
		if n != 1 {
			t.Errorf("%s token was taken", what)
		}
	}
	if n := ask(2, p.from, good); n != 2 {
		t.Error("the right token was refused")
	}
	p.requests[0].destroy()
	p.requests[1].destroy()
	ask(5, p.from, 0)
	ask(6, p.from, 0)
	good = token
	p.pass(33 * sec)
	if n := ask(6, p.from, good); n != 3 {
		t.Errorf("an old token was taken: %d requests", n)
	}
}

// TestShortQuestions: a question for the queue pair of a port number that is shorter than its answer may be is
// not answered, not even if it is a copy of an answered question.
func TestShortQuestions(t *testing.T) {
	w := newWorld(t, 1, options{}, options{})
	to := w.hosts[1]
	in, out := 0, 0
	w.sent = func(d datagram) { out += ipHeaders + len(d.payload) }
	server := to.newProgram()
	server.onRequest = func(e *end) {
		w.after(0, func() {
			w.must(to.m.Accept(e.id, nil, &cm.Param{QPN: 5, QKey: 6, PrivateData: make([]byte, wire.MaxPrivateData)}))
		})
	}
	listener := server.newEnd()
	listener.id.Datagrams = true
	w.must(to.m.Bind(listener.id, to.at(served)))
	w.must(to.m.Listen(listener.id, 4))
	ask := func(padding int) {
		b := body(t, wire.TRPConnect{HasExt: true, Padding: padding})
		in += ipHeaders + wire.TRPLen + len(b)
		to.message(w.hosts[0].at(4000), to.at(served), wire.TRP{Op: wire.OpResolve, PSN: 7}, b)
	}
	ask(0)
	if out != 0 {
		t.Errorf("a short question draws %d bytes", out)
	}
	ask(512)
	w.pass(ms)
	if out == 0 {
		t.Fatal("no answer")
	}
	for range 100 {
		ask(0)
	}
	if out > 3*in {
		t.Errorf("%d bytes draw %d", in, out)
	}
	first := out
	ask(512)
	if out != 2*first {
		t.Errorf("a copy of full length draws %d bytes, expected %d", out-first, first)
	}
}
