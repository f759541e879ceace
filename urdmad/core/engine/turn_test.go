package engine_test

import (
	"os"
	"runtime"
	"testing"
	"time"

	"urdma/reason"
	"urdma/urdmad/core/engine/enginetest"
	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
)

// longestTurn turns a host's engine until done, and returns by how much work has grown in
// one turn at most. It logs the CPU time of the longest turn, which depends on the machine.
func longestTurn(t *testing.T, h *enginetest.Host, work func() int, done func() bool) (most int) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var longest time.Duration
	turns := 0
	for ; !done(); turns++ {
		if turns == 1_000_000 {
			t.Fatal("there is no end to it")
		}
		before, began := work(), threadTime()
		h.Engine.Turn(h.World.Now())
		longest = max(longest, threadTime()-began)
		most = max(most, work()-before)
	}
	t.Logf("%d turns, the longest took %v of CPU time and did %d", turns, longest, most)
	return most
}

// inError counts queue pairs.
func inError(pairs []*enginetest.QP) (n int) {
	for _, q := range pairs {
		if q.Q.State() == abi.QPSErr {
			n++
		}
	}
	return n
}

// overflow has a completion queue of one entry overrun.
func overflow(t *testing.T, c *enginetest.Client, cq *enginetest.CQ) (do func()) {
	q := c.NewQPOn(&abi.QPCap{MaxSendWR: 4, MaxRecvWR: 1, MaxSendSGE: 1, MaxRecvSGE: 1}, cq, cq)
	if err := q.Modify(abi.QPSErr); err != nil {
		t.Fatal(err)
	}
	return func() {
		for id := range uint64(3) {
			q.Post(enginetest.Send(id))
		}
	}
}

// targets makes queue pairs of type XRC_RECV.
func targets(c *enginetest.Client, d *qp.Domain, n int) (out []*enginetest.QP) {
	for range n {
		out = append(out, c.NewTarget(d))
	}
	return out
}

// TestManyFail: what fails thousands of queue pairs fails some in each turn, with its reason, and those
// that don't stand on it, or came later, not at all.
func TestManyFail(t *testing.T) {
	const pairs, most = 1000, 150 // most: that fail in a turn
	capacity := abi.QPCap{MaxSendWR: 1, MaxRecvWR: 1, MaxSendSGE: 1, MaxRecvSGE: 1}
	many := func(c *enginetest.Client, cq *enginetest.CQ) (out []*enginetest.QP) {
		for range pairs {
			out = append(out, c.NewQPOn(&capacity, cq, cq))
		}
		return out
	}
	for name, scene := range map[string]func(w *enginetest.World, c *enginetest.Client) (out []*enginetest.QP,
		fail func()){
		"completion queue": func(w *enginetest.World, c *enginetest.Client) ([]*enginetest.QP, func()) {
			cq := c.NewCQ(1)
			return many(c, cq), overflow(t, c, cq)
		},
		"client": func(w *enginetest.World, c *enginetest.Client) ([]*enginetest.QP, func()) {
			return many(c, c.NewCQ(1)), func() { w.A.Engine.QPs.FailClient(&c.E.Client, reason.Bug) }
		},
		"completion queue of an XRC domain": func(w *enginetest.World, c *enginetest.Client) ([]*enginetest.QP, func()) {
			cq, d := c.NewCQ(1), qp.NewDomain()
			for range 100 {
				c.NewNamed(d, 1, cq)
			}
			return targets(w.A.NewClient(), d, pairs), overflow(t, c, cq)
		},
		"client of an XRC domain": func(w *enginetest.World, c *enginetest.Client) ([]*enginetest.QP, func()) {
			d := qp.NewDomain()
			c.NewNamed(d, 1, c.NewCQ(1))
			return targets(w.A.NewClient(), d, pairs), func() { w.A.Engine.QPs.FailClient(&c.E.Client, reason.Bug) }
		},
		"shared receive queue": func(w *enginetest.World, c *enginetest.Client) ([]*enginetest.QP, func()) {
			d := qp.NewDomain()
			s := c.NewNamed(d, pairs, c.NewCQ(1))
			out := targets(w.A.NewClient(), d, pairs)
			for _, q := range out {
				s.Post(1)
				if q.Q.BeginReceive(s.Q.Shared().Number, 0).Is != qp.Done {
					t.Fatal("no receive")
				}
			}
			return out, func() { w.A.Engine.QPs.RemoveQueue(s.Q) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := enginetest.New(t, enginetest.Options{Seed: 100})
			c := w.A.NewClient()
			other := many(w.A.NewClient(), w.A.NewClient().NewCQ(1))
			doomed, fail := scene(w, c)
			w.Pass(time.Millisecond)
			w.A.Engine.Do(fail)
			count := func() int { return inError(doomed) }
			if n := longestTurn(t, w.A, count, func() bool { return count() == pairs }); n > most {
				t.Errorf("%d queue pairs failed in one turn, expected %d at most", n, most)
			}
			why := map[string]reason.Number{"completion queue": reason.Overrun, "client": reason.Bug,
				"completion queue of an XRC domain": reason.Overrun, "client of an XRC domain": reason.Bug,
				"shared receive queue": reason.Memory}[name]
			for _, q := range doomed {
				if q.Q.Why() != why {
					t.Fatalf("a queue pair has failed because of %v, expected %v", q.Q.Why(), why)
				}
			}
			later := many(c, c.NewCQ(1))
			w.Pass(time.Millisecond)
			if n := inError(other) + inError(later); n > 0 {
				t.Errorf("%d other queue pairs have failed", n)
			}
		})
	}
}

// TestFlushInParts: of a queue pair that fails with a long queue, a part completes in
// each turn, all with an error, and in order.
func TestFlushInParts(t *testing.T) {
	for name, fail := range map[string]func(q *enginetest.QP){
		"queue pair": func(q *enginetest.QP) { q.Q.Fail(qp.EventFatal, reason.Memory) },
		"its sends":  func(q *enginetest.QP) { q.Q.StopSends() },
	} {
		t.Run(name, func(t *testing.T) {
			const slots = 4096
			w := enginetest.New(t, enginetest.Options{Seed: 101, RNRRetry: 7})
			c := w.A.NewClient()
			a := c.NewQPOn(&abi.QPCap{MaxSendWR: slots, MaxRecvWR: 1, MaxSendSGE: 1, MaxRecvSGE: 1}, c.NewCQ(slots), c.NewCQ(1))
			enginetest.Join(a, w.A.NewClient().NewQP(nil), 4)
			for i := range uint64(slots) {
				a.PostInline(enginetest.Send(i), nil) // no receive
			}
			w.Pass(20 * time.Millisecond)
			var got []abi.CQE
			polled := func() int {
				got = append(got, a.Send.Poll()...)
				return len(got)
			}
			w.A.Engine.Do(func() { fail(a) })
			if n := longestTurn(t, w.A, polled, func() bool { return polled() == slots }); n > 512 {
				t.Errorf("%d completions in one turn, expected 512 at most", n)
			}
			for i, e := range got {
				if e.Status != abi.StatusWRFlushErr || e.WRID != uint64(i) {
					t.Fatalf("completion %d: %+v", i, e)
				}
			}
		})
	}
}

// TestTurnHasABudget: however many queue pairs of however many clients have something to
// send, a turn sends so much, every client gets a share, and all is sent.
func TestTurnHasABudget(t *testing.T) {
	const clients, pairs = 12, 48
	for name, load := range map[string]struct{ posts, size, most int }{
		"long":  {4, 256 << 10, 40},
		"short": {64, 0, 2400},
	} {
		t.Run(name, func(t *testing.T) {
			w := enginetest.New(t, enginetest.Options{Seed: 102})
			peer := w.A.NewClient()
			sink := peer.Register(1<<20, enginetest.ReadWrite)
			var all [clients][]*enginetest.QP
			var sources [clients]*enginetest.Region
			for i := range all {
				c := w.A.NewClient()
				sources[i] = c.Register(1<<20, enginetest.ReadWrite)
				for range pairs {
					a := c.NewQP(&abi.QPCap{MaxSendWR: 64, MaxRecvWR: 1, MaxSendSGE: 1, MaxRecvSGE: 1})
					enginetest.Join(a, peer.NewQP(nil), 4)
					all[i] = append(all[i], a)
				}
			}
			w.Pass(time.Millisecond)
			for i, of := range all {
				for _, a := range of {
					for id := range uint64(load.posts) {
						a.Post(enginetest.Write(id, sink, 0), sources[i].SGE(0, load.size))
					}
				}
			}
			sent := func(of []*enginetest.QP) (n int) {
				for _, q := range of {
					n += int(q.Q.SQ.Head())
				}
				return n
			}
			total := func() (n int) {
				for _, of := range all {
					n += sent(of)
				}
				return n
			}
			most := longestTurn(t, w.A, total, func() bool {
				least, n := total(), total()
				for _, of := range all {
					least = min(least, sent(of))
				}
				if n > 4*load.most && least < n/clients/4 {
					t.Fatalf("%d messages were sent, but %d of one client", n, least)
				}
				return n == clients*pairs*load.posts
			})
			if most > load.most {
				t.Errorf("a turn sent %d messages, expected %d at most", most, load.most)
			}
		})
	}
}

// TestGroupsHaveABudget: what is sent to groups of many members costs a turn no more than
// its budget, wherever it comes from, and reaches all members in the order in which it was
// sent, though others leave meanwhile.
func TestGroupsHaveABudget(t *testing.T) {
	const members, messages, most = 3000, 64, 8000 // most: members served in a turn
	for _, local := range []bool{false, true} {
		t.Run(map[bool]string{false: "wire", true: "local"}[local], func(t *testing.T) {
			w := enginetest.New(t, enginetest.Options{Seed: 103})
			host := w.B
			if local {
				host = w.A
			}
			a, c := w.A.NewClient().NewDatagramQP(enginetest.QKey), host.NewClient()
			src := a.Client.Register(4096, enginetest.ReadWrite)
			others := make([]*enginetest.QP, members)
			for i := range others {
				others[i] = c.NewDatagramQP(enginetest.QKey) // no receives
				others[i].Attach(enginetest.Group)
			}
			last := host.NewClient().NewDatagramQP(enginetest.QKey)
			last.Attach(enginetest.Group)
			sink := last.Client.Register(4096, enginetest.ReadWrite)
			for id := range uint64(messages) {
				last.PostRecv(id, sink.SGE(0, 4096))
			}
			w.Pass(time.Millisecond)
			for id := range uint64(messages) {
				wr := enginetest.ToGroup(id)
				wr.Opcode, wr.ImmOrSTag = abi.WRSendWithImm, uint32(id)
				a.Post(wr, src.SGE(0, 100))
			}
			if !local {
				w.A.Engine.Turn(w.Now())
				w.Net.Advance(int64(w.Now()) + int64(time.Millisecond))
			}
			served := func() int { return int(host.Engine.Datagrams.Stats.NoReceive) }
			var got []abi.CQE
			gone := 0
			n := longestTurn(t, host, served, func() bool {
				if len(got) > messages/2 && gone < members-10 {
					q := others[gone] // on the host's thread: between two turns
					host.Engine.Datagrams.Forget(q.Q)
					gone++
				}
				got = append(got, last.Recv.Poll()...)
				return len(got) == messages
			})
			if n > most {
				t.Errorf("%d members were served in one turn, expected %d at most", n, most)
			}
			for i, e := range got {
				if e.Status != abi.StatusSuccess || e.ImmOrSTag != uint32(i) {
					t.Fatalf("message %d: %+v", i, e)
				}
			}
			if n := served(); n > members*messages || n < members*messages/3 {
				t.Errorf("%d members had no receive", n)
			}
		})
	}
}

// TestTurnsAtTheLimits: with as many queue pairs as a port has, connected, whatever happens
// to all of them at once takes many turns, in each of which a part of it is done.
func TestTurnsAtTheLimits(t *testing.T) {
	pairs := 1024
	if os.Getenv("URDMA_LONG") != "" {
		pairs = 4096
	}
	for _, c := range []struct {
		name string
		most int // of work, in a turn
		do   func(l *limits)
		work func(l *limits) int
		end  int // of work
	}{
		{"posts", 2500, (*limits).postAll, (*limits).sent, 16 * pairs},
		{"events", 800, (*limits).armAll, (*limits).events, pairs / 4},
		{"mistakes", 800, (*limits).failAll, (*limits).failed, pairs},
		{"fault", 150, func(l *limits) {
			l.w.A.Engine.Do(func() { l.w.A.Engine.QPs.FailClient(&l.a[0].Client.E.Client, reason.Memory) })
		}, (*limits).failed, pairs},
		{"dead peer", 300, func(l *limits) {
			l.w.B.Stop()
			for _, a := range l.a {
				a.PostInline(enginetest.Send(1), nil)
			}
		}, (*limits).failed, pairs},
	} {
		for _, local := range []bool{false, true} {
			if local && c.name == "dead peer" {
				continue
			}
			t.Run(c.name+map[bool]string{false: "/wire", true: "/local"}[local], func(t *testing.T) {
				l := newLimits(t, pairs, local)
				c.do(l)
				work := func() int { return c.work(l) }
				if n := longestTurn(t, l.w.A, work, func() bool {
					l.others()
					return work() >= c.end
				}); n > c.most {
					t.Errorf("a turn did %d of %d, expected %d at most", n, c.end, c.most)
				}
			})
		}
	}
}

// limits is many connected queue pairs of two clients.
type limits struct {
	w         *enginetest.World
	a, b      []*enginetest.QP
	src, sink *enginetest.Region
	cqs       []*enginetest.CQ // of a; four share one
}

func newLimits(t *testing.T, pairs int, local bool) *limits {
	l := &limits{w: enginetest.New(t, enginetest.Options{Seed: 104, RNRRetry: 7, DeathTimeout: 300 * time.Millisecond})}
	x, y := l.w.A.NewClient(), l.w.B.NewClient()
	if local {
		y = l.w.A.NewClient()
	}
	l.src, l.sink = x.Register(1<<20, enginetest.ReadWrite), y.Register(1<<20, enginetest.ReadWrite)
	capacity := abi.QPCap{MaxSendWR: 64, MaxRecvWR: 1, MaxSendSGE: 1, MaxRecvSGE: 1}
	other := y.NewCQ(64)
	for i := range pairs {
		if i%4 == 0 {
			l.cqs = append(l.cqs, x.NewCQ(4*72))
		}
		cq := l.cqs[len(l.cqs)-1]
		l.a, l.b = append(l.a, x.NewQPOn(&capacity, cq, cq)), append(l.b, y.NewQPOn(&capacity, other, other))
		enginetest.Join(l.a[i], l.b[i], 1)
	}
	l.w.Pass(10 * time.Millisecond)
	return l
}

// postAll posts 8 Sends and 8 Writes to each queue pair.
func (l *limits) postAll() {
	for i, a := range l.a {
		l.b[i].PostRecv(1, l.sink.SGE(0, 4096))
		for id := range uint64(8) {
			a.Post(enginetest.Write(id, l.sink, 0), l.src.SGE(0, 20000))
		}
		a.Post(enginetest.Send(8), l.src.SGE(0, 64))
		for id := range uint64(7) {
			a.Post(enginetest.Write(9+id, l.sink, 0))
		}
	}
}

// sent is how many of those were handed to their carriers.
func (l *limits) sent() (n int) {
	for _, a := range l.a {
		n += int(a.Q.SQ.Next())
	}
	return n
}

// armAll has a Send complete on each completion queue, which is armed.
func (l *limits) armAll() {
	for i, a := range l.a {
		if i%4 == 0 {
			l.cqs[i/4].Ring.Arm(false)
			l.b[i].PostRecv(1, l.sink.SGE(0, 4096))
			a.Post(enginetest.Send(1), l.src.SGE(0, 64))
		}
	}
}

// events is how many events that has raised.
func (l *limits) events() (n int) {
	for _, cq := range l.cqs {
		n += int(cq.Q.Events)
	}
	return n
}

// failAll posts a Send with a wrong key to each queue pair, and others behind it.
func (l *limits) failAll() {
	for _, a := range l.a {
		a.Post(enginetest.Send(1), abi.SGE{Addr: 1, Length: 1, LKey: 7})
		for id := range uint64(60) {
			a.PostInline(enginetest.Send(id), nil)
		}
	}
}

func (l *limits) failed() int { return inError(l.a) }

// others has the rest of the world go on.
func (l *limits) others() {
	step := 500
	if l.w.B.Stopped() {
		step = 5_000_000
	} else {
		l.w.B.Engine.Turn(l.w.Now())
	}
	l.w.Net.Advance(int64(l.w.Now()) + int64(step))
}
