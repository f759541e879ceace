package qp

import (
	"math/rand/v2"
	"runtime"
	"testing"

	"urdma/verbs/abi"
	"urdma/verbs/ring"
)

// TestSlots: copies stay what they are from use to completion, wherever the
// queue stands in its ring, and there are no more chunks than outstanding work
// needs.
func TestSlots(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var p chunkPool
	for _, entries := range []uint32{1, 2, 4, 8, 16, 128} {
		for _, start := range []uint32{0, 5, ^uint32(20)} {
			var s slots
			s.init(entries, 3)
			head := start
			tail := head
			for range 5000 {
				if r.IntN(2) == 0 && tail-head < entries {
					s.use(&p, tail).id = uint64(tail)
					s.At(tail).list = append(s.At(tail).list, element{}, element{}, element{va: uint64(tail)})
					tail++
				} else if head != tail {
					s.At(head).list = s.At(head).list[:0]
					s.passed(head, tail)
					head++
				}
				if r.IntN(50) == 0 {
					for ; head != tail; head++ {
						s.At(head).list = s.At(head).list[:0]
						s.passed(head, tail)
					}
				}
				chunks := uint32(0)
				for _, c := range s.chunks {
					if c != nil {
						chunks++
					}
				}
				if most := (tail-head)/chunkSlots + 2; chunks > most {
					t.Fatalf("%d chunks for %d of %d slots", chunks, tail-head, entries)
				}
				for i := head; i != tail; i++ {
					if s.At(i).id != uint64(i) || s.At(i).list[2].va != uint64(i) {
						t.Fatalf("%d entries, %d..%d: the copy at %d is that of %d", entries, head, tail, i, s.At(i).id)
					}
				}
			}
		}
	}
	var none slots
	none.init(0, 3)
	for _, i := range []uint32{0, 1, ^uint32(0)} {
		if none.At(i) != &vacant || vacant.list != nil {
			t.Errorf("a queue that does not exist has a work request at %d", i)
		}
	}
	for width, list := range p.spare {
		if len(list) > maxSpare {
			t.Errorf("%d chunks of width %d are spare", len(list), width)
		}
	}
}

// TestIdleIsSmall: what a queue pair could come to need is not there before it
// is needed.
func TestIdleIsSmall(t *testing.T) {
	for _, c := range []struct {
		depth uint32
		most  uint64 // bytes of heap
	}{{128, 4 << 10}, {16384, 32 << 10}} {
		l := ring.QPLayout(abi.QPCap{MaxSendWR: c.depth, MaxRecvWR: c.depth, MaxSendSGE: MaxSGE, MaxRecvSGE: MaxSGE,
			MaxInline: 64})
		memory := make([]byte, l.Bytes)
		const n = 32
		var kept [n]*QP
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		for i := range kept {
			kept[i] = New(Config{SendCQ: &CQ{}, RecvCQ: &CQ{}, Cap: l.Cap}, memory, &l)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		each := int64(after.HeapAlloc-before.HeapAlloc) / n
		t.Logf("%d slots each way: %d bytes", c.depth, each)
		if each > int64(c.most) {
			t.Errorf("%d slots each way: %d bytes of heap a queue pair, expected at most %d", c.depth, each, c.most)
		}
		runtime.KeepAlive(kept)
	}
}
