package engine_test

import (
	"testing"
	"time"

	"urdma/urdmad/engine/enginetest"
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
