package engine_test

import (
	"slices"
	"testing"

	"urdma/urdmad/core/engine/enginetest"
	"urdma/verbs/abi"
)

// TestEqualFlowsShareEqually: the queue pairs of a client that together always have more to send than a turn moves
// for one client get equal shares.
func TestEqualFlowsShareEqually(t *testing.T) {
	const flows, depth, size, turns = 16, 4, 64 << 10, 40
	w := enginetest.New(t, enginetest.Options{Seed: 82, NoCapture: true})
	a, b := w.A.NewClient(), w.A.NewClient()
	from, to := a.Register(size, enginetest.ReadWrite), b.Register(size, enginetest.ReadWrite)
	capacity := abi.QPCap{MaxSendWR: 2 * depth, MaxRecvWR: 1, MaxSendSGE: 1, MaxRecvSGE: 1}
	queue := a.NewCQ(flows * depth)
	pairs, completed := make([]*enginetest.QP, flows), make([]int, flows)
	write := func(i uint64) { pairs[i].Post(enginetest.Write(i, to, 0), from.SGE(0, size)) }
	for i := range pairs {
		pairs[i] = a.NewQPOn(&capacity, queue, a.NewCQ(1))
		enginetest.Join(pairs[i], b.NewQP(nil), 1)
		for range depth {
			write(uint64(i))
		}
	}
	total := 0
	for range turns {
		w.A.Engine.Turn(w.Now())
		for _, e := range queue.Poll() {
			total++
			completed[e.WRID]++
			write(e.WRID)
		}
	}
	if least := slices.Min(completed); least*flows < total*9/10 {
		t.Errorf("completed Writes of each queue pair: %v", completed)
	}
}
