package rc

import "urdma/wire/roce"

// Sequence is a PSN that does not wrap: it counts from the connection's first, which is
// within the first 2^24 after base.
type Sequence uint64

// base keeps numbers before the first above 0.
const base Sequence = 1 << 24

func sequenceOf(first roce.PSN) Sequence { return base + Sequence(first) }

// PSN is the number as packets have it.
func (s Sequence) PSN() roce.PSN { return roce.PSN(s & (1<<24 - 1)) }

// near is the number closest to s that packets have as p.
func (s Sequence) near(p roce.PSN) Sequence { return s + Sequence(int64(p.Sub(s.PSN()))) }
