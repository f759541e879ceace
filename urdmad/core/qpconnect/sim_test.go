package qpconnect_test

import (
	"flag"
	"testing"

	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/qpconnect"
)

var (
	oneSeed = flag.Uint64("seed", 0, "run TestSimultaneousOpen with this seed only")
	seeds   = flag.Uint64("seeds", 3000, "how many seeds TestSimultaneousOpen tries")
)

// TestSimultaneousOpen: pairs of queue pairs enter RTR at random times, are reset and enter it again, while the network
// loses, duplicates and delays packets; copies may arrive long after a reset. Once the programs stop and the network
// loses nothing more, both ends of each pair must have one and the same connection, and keep it. When all are reset,
// nothing may be left.
func TestSimultaneousOpen(t *testing.T) {
	var total qpconnect.Stats
	for seed := uint64(1); seed <= *seeds; seed++ {
		if *oneSeed != 0 {
			seed = *oneSeed
		}
		s := newSimulation(t, seed)
		s.run()
		for _, h := range s.hosts {
			total.Established += h.m.Stats.Established
			total.Challenged += h.m.Stats.Challenged
			total.Ignored += h.m.Stats.Ignored
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
		if *oneSeed != 0 {
			return
		}
	}
	t.Logf("%+v", total)
	if total.Challenged == 0 || total.Ignored == 0 {
		t.Error("the simulation meets no challenge, or no request that comes too early")
	}
}

type simulation struct {
	*world
	pairs [][2]*queuePair
}

const actTime = 3 * sec

func newSimulation(t *testing.T, seed uint64) *simulation {
	s := &simulation{world: newWorld(t, seed)}
	s.delay = 1 + clock.Time(s.rand.Int64N(int64(20*ms)))
	if s.rand.IntN(3) > 0 {
		s.loss, s.double = s.rand.Float64()*0.5, s.rand.Float64()*0.4
	}
	if s.rand.IntN(4) == 0 {
		s.delay = sec // copies from before a reset
	}
	for i := range 1 + s.rand.IntN(3) {
		a := s.hosts[0].newQP(uint32(100*i + 2 + s.rand.IntN(90)))
		b := a
		switch s.rand.IntN(8) {
		case 0: // with itself
		case 1:
			b = s.hosts[0].newQP(a.n + 1000)
		default:
			b = s.hosts[1].newQP(uint32(100*i + 2 + s.rand.IntN(90)))
		}
		s.pairs = append(s.pairs, [2]*queuePair{a, b})
	}
	return s
}

// life is a program's use of its end: it enters RTR, and may reset the queue pair and enter RTR again.
func (s *simulation) life(q, peer *queuePair) {
	s.soon(func() { q.rtr(peer.end()) })
	for range s.rand.IntN(4) {
		s.soon(func() {
			q.reset()
			s.after(clock.Time(s.rand.Int64N(int64(100*ms))), func() { q.rtr(peer.end()) })
		})
	}
	if s.rand.IntN(2) == 0 {
		s.soon(func() {
			if q.pair != nil {
				q.patience = 100 * sec
				q.h.m.Waiting(q.pair)
			}
		})
	}
	s.after(actTime, func() { q.rtr(peer.end()) })
}

func (s *simulation) soon(fn func()) { s.after(clock.Time(s.rand.Int64N(int64(actTime))), fn) }

func (s *simulation) run() {
	for _, p := range s.pairs {
		s.life(p[0], p[1])
		s.life(p[1], p[0])
	}
	s.pass(actTime + 200*ms)
	s.loss, s.double = 0, 0
	s.check("after a while", 30*sec)
	s.pass(10 * sec)
	s.check("still", 1)
	for _, h := range s.hosts {
		for _, q := range h.qps {
			q.reset()
		}
	}
	s.pass(30 * sec)
	for _, h := range s.hosts {
		if h.m.Len() != 0 || len(h.conns) != 0 {
			s.t.Errorf("%d pairs and %d connections are left", h.m.Len(), len(h.conns))
		}
	}
	if s.timers.Next() != clock.Never {
		s.t.Error("a timer is left")
	}
}

func (s *simulation) check(when string, limit clock.Time) {
	for _, p := range s.pairs {
		if !s.until(limit, func() bool { return joined(p[0], p[1]) }) {
			s.t.Errorf("%s: QP %d is %v, QP %d is %v, and they are not joined", when, p[0].n, p[0].pair.State(), p[1].n,
				p[1].pair.State())
		}
	}
}
