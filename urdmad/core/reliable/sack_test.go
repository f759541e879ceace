package reliable

import (
	"math/rand/v2"
	"testing"

	"urdma/wire"
)

// TestSacksTakeTurns: if there are more runs than a SACK has space for, the next SACKs report the omitted
// ones. Each begins with the newest run, and no two runs touch, also while gaps close between them.
func TestSacksTakeTurns(t *testing.T) {
	for _, closing := range []bool{false, true} {
		var c Conn
		c.Init(Config{Window: 1024, RecvWindow: 1024, PeerISN: 0xffffff00})
		const runs = 100
		at := func(i int) wire.PSN { return wire.PSN(0xffffff00).Add(uint32(1 + 3*i)) }
		for i := range runs {
			c.Arrive(0, at(i), false)
		}
		reported := map[wire.PSN]bool{}
		for round := range 5 {
			said := c.SackRuns(nil)
			if len(said) > wire.MaxSackRuns || !closing && said[0].First != at(runs-1) {
				t.Fatalf("round %d: %d runs, the first is %v", round, len(said), said[0])
			}
			for i, r := range said {
				for p := r.First; p != r.End; p = p.Add(1) {
					if !c.rx.held.has(p) {
						t.Errorf("round %d: %d is not held", round, p)
					}
					reported[p] = true
				}
				if c.rx.held.has(r.First.Add(^uint32(0))) || c.rx.held.has(r.End) {
					t.Errorf("round %d: run %d touches another", round, i)
				}
			}
			if closing { // two runs become one where the next SACK would begin
				c.Arrive(0, c.rx.unreported.Add(^uint32(0)), false)
				c.Arrive(0, c.rx.unreported.Add(^uint32(1)), false)
			}
		}
		for i := range runs {
			if !closing && !reported[at(i)] {
				t.Errorf("run %d was not reported", i)
			}
		}
	}
}

// TestRunAround: for any held segments, and wherever PSNs wrap, the run around a segment ends where the next segments
// are not held.
func TestRunAround(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		var c Conn
		window := 1 << r.IntN(12)
		c.Init(Config{Window: window, RecvWindow: window, PeerISN: wire.PSN(r.Uint32N(3000) - 1500)})
		share := r.IntN(100)
		for i := 1; i < window; i++ {
			if r.IntN(100) <= share {
				c.Arrive(0, c.rx.next.Add(uint32(i)), false)
			}
		}
		held := func(p wire.PSN) bool { return p.After(c.rx.next) && p.Before(c.rx.end) && c.rx.held.has(p) }
		for p := c.rx.next; p != c.rx.end; p = p.Add(1) {
			if !held(p) {
				continue
			}
			first, end := p, p
			for held(first.Add(^uint32(0))) {
				first = first.Add(^uint32(0))
			}
			for held(end) {
				end = end.Add(1)
			}
			if got := c.rx.runAround(p); got.First != first || got.End != end {
				t.Fatalf("window %d: around %d is %v, want [%d, %d)", window, p, got, first, end)
			}
		}
	}
}
