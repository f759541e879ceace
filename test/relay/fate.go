package relay

import (
	"math/rand/v2"
	"time"
)

// Fate describes the treatment of datagrams. Each probability is that of one datagram, from 0 to 1.
type Fate struct {
	Loss      float64
	Duplicate float64
	// Reorder is the probability that a datagram is delayed by Late.
	Reorder float64
	// Delay is the delay of every datagram, Late the additional delay of a reordered one; 0: DefaultLate.
	Delay, Late time.Duration
	// FirstOnly passes on only the first of several joined datagrams, like a kernel or device that damages the
	// datagrams that it splits.
	FirstOnly bool
	// Seed is the seed of all random decisions.
	Seed uint64
}

// DefaultLate lets some tens of datagrams overtake one.
const DefaultLate = 200 * time.Microsecond

// draws is the random source of one direction.
type draws struct {
	Fate
	rand *rand.Rand
}

func (f Fate) draws(direction uint64) draws {
	if f.Late == 0 {
		f.Late = DefaultLate
	}
	return draws{f, rand.New(rand.NewPCG(f.Seed, direction))}
}

// next draws the number of copies of a datagram, and their delays. Each datagram takes the same count of random
// numbers, whatever the results.
func (d *draws) next() (copies int, late time.Duration) {
	lost, twice, behind := d.rand.Float64() < d.Loss, d.rand.Float64() < d.Duplicate, d.rand.Float64() < d.Reorder
	late = d.Delay
	if behind {
		late += d.Late
	}
	switch {
	case lost:
		return 0, 0
	case twice:
		return 2, late
	}
	return 1, late
}
