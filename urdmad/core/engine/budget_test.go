package engine_test

import (
	"testing"
	"time"

	"urdma/urdmad/core/engine/enginetest"
	"urdma/urdmad/core/mem"
	"urdma/verbs/abi"
)

// TestPostsHaveABudget: queue pairs that post all their slots at once, again and
// again, in RTS and in error, cost a turn no more than its budget of slots.
func TestPostsHaveABudget(t *testing.T) {
	const slots, pairs = 4096, 8
	for _, state := range []string{"RTS", "error"} {
		t.Run(state, func(t *testing.T) {
			w := enginetest.New(t, enginetest.Options{Seed: 80})
			c := w.A.NewClient()
			capacity := abi.QPCap{MaxSendWR: slots, MaxRecvWR: 8, MaxSendSGE: 1, MaxRecvSGE: 1}
			var qps []*enginetest.QP
			for range pairs {
				a := c.NewQPOn(&capacity, c.NewCQ(2*slots), c.NewCQ(16))
				b := w.A.NewClient().NewQP(nil)
				enginetest.Join(a, b, 1)
				qps = append(qps, a)
			}
			for _, q := range qps {
				if state == "error" {
					if err := q.Modify(abi.QPSErr); err != nil {
						t.Fatal(err)
					}
				}
				for i := range slots {
					if !q.Ring.SQ.Write(&abi.SQE{WRID: uint64(i), Opcode: abi.WRSend, Flags: abi.SendInline}, nil) {
						t.Fatal("no slot")
					}
				}
				q.Ring.SQ.Publish()
				q.Bell()
			}
			taken := func() (n int) {
				for _, q := range qps {
					n += int(q.Q.SQ.Tail())
				}
				return n
			}
			before, longest := taken(), 0
			for range 10 * slots {
				w.Step()
				done := taken()
				longest = max(longest, done-before)
				before = done
			}
			if before < pairs*slots {
				t.Errorf("%d of %d posts were taken", before, pairs*slots)
			}
			if limit := pairs * 2 * 256; longest > limit {
				t.Errorf("%d posts were taken in a turn, expected at most %d", longest, limit)
			}
			w.Pass(time.Millisecond)
		})
	}
}

// TestCompletionsHaveABudget: however many sends become complete at once, because a Read
// in front of them has its answer, a turn completes so many, and all complete.
func TestCompletionsHaveABudget(t *testing.T) {
	const slots, pairs, most = 2000, 24, 20000
	for name, slow := range map[string]func(w *enginetest.World, a, b *enginetest.Client) (from, to *enginetest.Region){
		"answers arrive": func(w *enginetest.World, a, b *enginetest.Client) (from, to *enginetest.Region) {
			return b.RegisterFallback(4096, enginetest.ReadWrite), a.Register(4096, enginetest.ReadWrite)
		},
		"answers are written": func(w *enginetest.World, a, b *enginetest.Client) (from, to *enginetest.Region) {
			return b.Register(4096, enginetest.ReadWrite), a.RegisterFallback(4096, enginetest.ReadWrite)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := enginetest.New(t, enginetest.Options{Seed: 81, BlockedPages: true, NoCapture: true})
			x, y := w.A.NewClient(), w.B.NewClient()
			from, to := slow(w, x, y)
			gate := make(chan struct{})
			for _, c := range []*enginetest.Client{x, y} {
				c.E.Space.Submit(mem.Job{Write: true, Done: func(error) { <-gate }})
			}
			capacity := abi.QPCap{MaxSendWR: slots, MaxRecvWR: 1, MaxSendSGE: 1, MaxRecvSGE: 1}
			all := make([]*enginetest.QP, pairs)
			for i := range all {
				all[i] = x.NewQPOn(&capacity, x.NewCQ(8), x.NewCQ(1))
				enginetest.Join(all[i], y.NewQP(nil), 1)
			}
			w.Pass(time.Millisecond)
			for _, q := range all {
				q.Post(enginetest.Read(1, from, 0), to.SGE(0, 8))
				for id := range uint64(slots - 1) {
					wr := enginetest.Write(2+id, from, 0)
					wr.Flags = 0
					q.Post(wr)
				}
			}
			w.Pass(100 * time.Millisecond)
			completed := func() (n int) {
				for _, q := range all {
					n += int(q.Q.SQ.Head())
				}
				return n
			}
			for _, q := range all {
				if q.Q.SQ.Next() != slots || completed() > 0 {
					t.Fatalf("%d of %d sends are under way, %d have completed", q.Q.SQ.Next(), slots, completed())
				}
			}
			close(gate)
			for give := time.Now().Add(time.Minute); x.E.Unwritten() > 0 && !w.A.Engine.QPs.FallbackEnded() ||
				y.E.Unwritten() > 0; {
				if time.Now().After(give) {
					t.Fatal("the pages take nothing")
				}
				w.B.Engine.Turn(w.Now())
			}
			if n := longestTurn(t, w.A, completed, func() bool {
				w.B.Engine.Turn(w.Now())
				w.Net.Advance(int64(w.Now()) + 10_000)
				return completed() == pairs*slots
			}); n > most {
				t.Errorf("%d sends completed in one turn, expected %d at most", n, most)
			}
		})
	}
}
