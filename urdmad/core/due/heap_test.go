package due_test

import (
	"container/heap"
	"math/rand/v2"
	"testing"

	"urdma/urdmad/core/due"
)

type task struct {
	at    int64
	index int
}

func (t *task) Due() int64   { return t.at }
func (t *task) Stands(i int) { t.index = i }

// TestHeap: in whatever order entries are added, changed and removed, each knows its position, and they come out in
// the order of their times.
func TestHeap(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var h due.Heap[*task]
	for range 10000 {
		switch {
		case len(h) == 0 || r.IntN(3) == 0:
			heap.Push(&h, &task{at: r.Int64N(100)})
		case r.IntN(3) == 0:
			heap.Remove(&h, h[r.IntN(len(h))].index)
		default:
			e := h[r.IntN(len(h))]
			e.at = r.Int64N(100)
			heap.Fix(&h, e.index)
		}
		for i, e := range h {
			if e.index != i || e.at < h[0].at {
				t.Fatalf("entry %d of %d stands at %d; due at %d, the first at %d", i, len(h), e.index, e.at, h[0].at)
			}
		}
	}
	for last := int64(0); len(h) > 0; {
		e := heap.Pop(&h).(*task)
		if e.at < last {
			t.Fatalf("%d after %d", e.at, last)
		}
		last = e.at
	}
}
