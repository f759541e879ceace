package relay

import (
	"math/rand/v2"
	"time"
)

// Fate says what becomes of datagrams. Probabilities are those of each datagram,
// from 0 to 1.
type Fate struct {
	Loss      float64
	Duplicate float64
	// Reorder is of coming Late later than the others.
	Reorder float64
	// Delay is how long every datagram takes, Late how much longer one that is
	// reordered; 0 stands for DefaultLate.
	Delay, Late time.Duration
	// FirstOnly: of datagrams that come joined the first alone goes on, as where
	// the kernel or a device spoils what it cuts.
	FirstOnly bool
	// Seed is where all that is drawn comes from.
	Seed uint64
}

// DefaultLate has some tens of datagrams overtake one.
const DefaultLate = 200 * time.Microsecond

// draws is one direction's source of chance.
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

// next draws for one datagram: how many copies go on, and how late. Each datagram
// takes as many numbers from the source, whatever they come to.
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
