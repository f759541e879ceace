package rc

import "urdma/wire/roce"

// Sequence is a PSN extended so that it does not wrap. The connection's first number is within the first
// 2^24 after base.
type Sequence uint64

// base keeps numbers before the first one positive.
const base Sequence = 1 << 24

func sequenceOf(first roce.PSN) Sequence { return base + Sequence(first) }

// PSN returns the number's low 24 bits, as in packets.
func (s Sequence) PSN() roce.PSN { return roce.PSN(s & (1<<24 - 1)) }

// near returns the number closest to s whose PSN is p.
func (s Sequence) near(p roce.PSN) Sequence { return s + Sequence(int64(p.Sub(s.PSN()))) }
