package mem

import (
	"math/rand/v2"
	"testing"
)

// model is coverage with a counter for each byte.
type model [64]int

func (m *model) add(s span, by int) (fresh int) {
	for i := s.from; i < s.to; i++ {
		if m[i] == 0 {
			fresh++
		}
		m[i] += by
	}
	return fresh
}

// agree compares the runs with the model, and checks that there are no more than needed.
func (c *coverage) agree(m *model) bool {
	count, next, runs := 0, 0, 0
	for at, want := range m {
		if next < len(c.edges) && c.edges[next].at == uint64(at) {
			count = c.edges[next].count
			next++
		}
		if count != want {
			return false
		}
		if want != 0 && at == 0 || at > 0 && m[at-1] != want {
			runs++
		}
	}
	if m[len(m)-1] != 0 {
		runs++
	}
	return len(c.edges) == runs
}

func TestCoverage(t *testing.T) {
	const seed = 7
	rng := rand.New(rand.NewPCG(seed, 1))
	for round := range 200 {
		var c coverage
		var m model
		var live []span
		for range 60 {
			if len(live) > 0 && rng.IntN(3) == 0 {
				i := rng.IntN(len(live))
				c.drop(live[i])
				m.add(live[i], -1)
				live = append(live[:i], live[i+1:]...)
			} else {
				from := rng.Uint64N(63)
				s := span{from, from + 1 + rng.Uint64N(64-from)}
				fresh := 0
				c.add(s, func(f span) {
					if f.from >= f.to || f.from < s.from || f.to > s.to {
						t.Fatalf("seed %d, round %d: fresh %v of %v", seed, round, f, s)
					}
					fresh += int(f.to - f.from)
				})
				if want := m.add(s, 1); fresh != want {
					t.Fatalf("seed %d, round %d: %d fresh of %v, expected %d", seed, round, fresh, s, want)
				}
				live = append(live, s)
			}
			if !c.agree(&m) {
				t.Fatalf("seed %d, round %d: %v, expected %v", seed, round, c.edges, m)
			}
		}
		for _, s := range live {
			c.drop(s)
		}
		if len(c.edges) != 0 {
			t.Fatalf("seed %d, round %d: %v is left", seed, round, c.edges)
		}
	}
}

// TestNeighboursAreOneRun: many adjacent regions take no more room than one.
func TestNeighboursAreOneRun(t *testing.T) {
	var c coverage
	for i := range uint64(1000) {
		c.add(span{i * 10, i*10 + 10}, func(span) {})
	}
	if len(c.edges) != 2 {
		t.Errorf("%d edges", len(c.edges))
	}
}
