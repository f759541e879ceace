package cm_test

import (
	"flag"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/cm"
	"urdma/wire"
)

var (
	oneSeed = flag.Uint64("seed", 0, "run TestSimulation with this seed only")
	seeds   = flag.Uint64("seeds", 2000, "how many seeds TestSimulation tries")
)

// TestSimulation: programs on two hosts connect to each other and to
// themselves, accept, reject, disconnect and die, while the network loses,
// doubles and delays packets. Both sides of every attempt agree or have a
// documented error, and when all have gone the tables are empty.
func TestSimulation(t *testing.T) {
	heard := map[cm.EventKind]int{}
	for seed := uint64(1); seed <= *seeds; seed++ {
		if *oneSeed != 0 {
			seed = *oneSeed
		}
		s := newSimulation(t, seed)
		s.run()
		s.count(heard)
		if t.Failed() {
			t.Fatalf("seed %d: %s", seed, s.text)
		}
		if *oneSeed != 0 {
			return
		}
	}
	for kind := cm.EventAddrResolved; kind <= cm.EventDisconnected; kind++ {
		if kind.String() != "" && kind != cm.EventConnectRequest && heard[kind] < 10 {
			t.Errorf("only %d events %v in %d runs", heard[kind], kind, *seeds)
		}
	}
	t.Logf("events: %v", heard)
}

// count adds the events of a run.
func (s *simulation) count(heard map[cm.EventKind]int) {
	for _, a := range s.attempts {
		for _, e := range append(a.passive, a.active) {
			for _, ev := range e.events {
				heard[ev.Kind]++
			}
		}
	}
}

// simulation is a world with programs that act at random.
type simulation struct {
	*world
	text     string // what was drawn
	attempts []*attempt
	servers  []*server
}

// attempt is one connection that somebody wants.
type attempt struct {
	token   string // its private data
	to      netip.AddrPort
	param   *cm.Param
	active  *end
	passive []*end // more than one is an error
}

const (
	served   = 7000 // the port number that servers listen on
	unserved = 7001
	actTime  = 5 * sec // for so long things are begun
)

func newSimulation(t *testing.T, seed uint64) *simulation {
	s := &simulation{world: newWorld(t, seed)}
	host := func() options {
		return options{timeout: clock.Time(500+s.rand.IntN(6000)) * ms, maxDepth: uint16(1 + s.rand.IntN(300))}
	}
	opts := []options{host(), host()}
	w := newWorld(t, seed, opts...)
	w.rand = s.rand
	s.world = w
	w.path = path{delay: 1 + clock.Time(s.rand.Int64N(int64(20*ms)))}
	if s.rand.IntN(3) > 0 {
		w.path.loss, w.path.double = s.rand.Float64()*0.4, s.rand.Float64()*0.3
	}
	if s.rand.IntN(8) == 0 {
		w.path.delay = 3 * sec // copies that come when all is over
	}
	s.text = fmt.Sprintf("hosts %+v, path %+v", opts, w.path)
	for _, h := range w.hosts {
		s.serve(h)
	}
	if s.rand.IntN(6) == 0 {
		s.atSomeTime(func() { s.cut(s.hosts[s.rand.IntN(2)], clock.Time(s.rand.Int64N(int64(8*sec)))) })
	}
	for i := range 2 + s.rand.IntN(20) {
		s.atSomeTime(func() { s.attempt(i) })
	}
	return s
}

// atSomeTime runs fn at a time of chance.
func (s *simulation) atSomeTime(fn func()) { s.after(clock.Time(s.rand.Int64N(int64(actTime))), fn) }

// cut lets nothing arrive at a host for a while.
func (s *simulation) cut(h *host, while clock.Time) {
	h.cut = true
	s.after(while, func() { h.cut = false })
}

// sometimes runs fn after a short time of chance, once in n times.
func (s *simulation) sometimes(n int, limit clock.Time, fn func()) {
	if s.rand.IntN(n) == 0 {
		s.after(clock.Time(s.rand.Int64N(int64(limit))), fn)
	}
}

// server listens, and sometimes closes its listener and listens again.
type server struct {
	*program
	listener *end
}

func (s *simulation) serve(h *host) {
	v := &server{program: h.newProgram()}
	v.onRequest = s.requested
	s.servers = append(s.servers, v)
	backlog := 1 + s.rand.IntN(6)
	v.listener = v.listen(served, backlog)
	for range s.rand.IntN(3) {
		s.atSomeTime(func() {
			if v.listener.destroyed {
				return
			}
			v.listener.destroy()
			s.sometimes(2, sec, func() {
				if v.listener.destroyed {
					v.listener = v.listen(served, backlog)
				}
			})
		})
	}
}

// long is a text that now and then is as long as private data may be, which is
// more than goes to an address that is not proved.
func (s *simulation) long(text string) []byte {
	b := []byte(text)
	if s.rand.IntN(4) == 0 {
		b = append(b, make([]byte, wire.MaxPrivateData-len(b))...)
	}
	return b
}

func (s *simulation) depth() uint8 { return uint8(s.rand.IntN(256)) }

// attempt begins one, and may change its mind.
func (s *simulation) attempt(i int) {
	from, to := s.hosts[s.rand.IntN(2)], s.hosts[s.rand.IntN(2)]
	port := uint16(served)
	if s.rand.IntN(10) == 0 {
		port = unserved
	}
	a := &attempt{token: fmt.Sprint("attempt ", i), to: to.at(port), active: from.newProgram().newEnd()}
	if s.rand.IntN(15) == 0 {
		a.to = netip.MustParseAddrPort("10.0.0.99:7000")
	}
	a.param = &cm.Param{ResponderResources: s.depth(), InitiatorDepth: s.depth(), PrivateData: []byte(a.token)}
	s.attempts = append(s.attempts, a)
	e := a.active
	e.onEvent = func(ev *cm.Event) {
		if ev.Kind == cm.EventEstablished {
			s.live(e)
		}
	}
	e.connect(a.to, a.param)
	s.sometimes(6, 3*sec, e.destroyOnce)
	s.sometimes(8, 3*sec, e.destroyQP)
}

// live is a program's use of a connection.
func (s *simulation) live(e *end) {
	s.sometimes(3, sec, func() {
		if !e.destroyed {
			s.must(e.p.h.m.Disconnect(e.id))
		}
	})
	s.sometimes(5, sec, e.destroyOnce)
	s.sometimes(8, sec, e.destroyQP)
}

func (e *end) destroyOnce() {
	if !e.destroyed {
		e.destroy()
	}
}

func (e *end) destroyQP() {
	if e.qp != nil && !e.qp.gone {
		e.qp.destroy()
	}
}

// named is the attempt with that private data.
func (s *simulation) named(token string) *attempt {
	i := slices.IndexFunc(s.attempts, func(a *attempt) bool { return a.token == token })
	if i < 0 {
		s.t.Fatalf("a request has private data %q, which nobody sent", token)
	}
	return s.attempts[i]
}

// requested decides about a request, at once or later.
func (s *simulation) requested(e *end) {
	a := s.named(string(e.request.Param.PrivateData))
	a.passive = append(a.passive, e)
	e.onEvent = func(ev *cm.Event) {
		if ev.Kind == cm.EventEstablished {
			s.live(e)
		}
	}
	decide := func() {
		switch n := s.rand.IntN(20); {
		case n < 2:
			e.reject(string(s.long("no, " + a.token)))
		case n < 4:
			e.rejected, e.decidedAt = true, s.now
			e.destroy()
		case n < 5:
			e.rejected, e.decidedAt = true, s.now
			s.must(e.p.h.m.Disconnect(e.id))
		case n < 6: // for ever undecided
		default:
			e.accept(&cm.Param{ResponderResources: s.depth(), InitiatorDepth: s.depth(), PrivateData: s.long("yes, " + a.token)})
			s.sometimes(8, 200*ms, e.destroyOnce)
			s.sometimes(8, 200*ms, e.destroyQP)
			s.sometimes(8, 200*ms, func() {
				if !e.destroyed {
					s.must(e.p.h.m.Disconnect(e.id))
				}
			})
		}
	}
	switch s.rand.IntN(4) {
	case 0:
		s.after(clock.Time(s.rand.Int64N(int64(3*sec))), decide)
	default:
		s.after(clock.Time(s.rand.Int64N(int64(5*ms))), decide)
	}
}

// run lets everything happen, checks it, ends everything and checks that.
func (s *simulation) run() {
	s.pass(actTime + 10*sec)
	s.path = path{delay: ms} // from here on no peer seems to be dead
	s.pass(20 * sec)
	for _, a := range s.attempts {
		s.check(a)
	}
	for _, a := range s.attempts {
		for _, e := range append(a.passive, a.active) {
			e.destroyOnce()
			e.destroyQP()
		}
	}
	for _, v := range s.servers {
		v.listener.destroyOnce()
	}
	s.pass(20 * sec)
	s.checkEmpty()
}
