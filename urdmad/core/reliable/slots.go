package reliable

import (
	"math/bits"

	"urdma/wire"
)

// slotSet is a set of PSNs within one window, a bit for each ring slot. The
// caller sees to it that its members never span more than the window, so a
// slot stands for one PSN only.
type slotSet struct {
	words []uint64
	size  uint32 // slots; a power of two
}

func newSlotSet(size int) slotSet {
	return slotSet{words: make([]uint64, (size+63)/64), size: uint32(size)}
}

func (s *slotSet) slot(p wire.PSN) uint32 { return uint32(p) & (s.size - 1) }

func (s *slotSet) has(p wire.PSN) bool {
	i := s.slot(p)
	return s.words[i>>6]>>(i&63)&1 != 0
}

func (s *slotSet) add(p wire.PSN) {
	i := s.slot(p)
	s.words[i>>6] |= 1 << (i & 63)
}

func (s *slotSet) remove(p wire.PSN) {
	i := s.slot(p)
	s.words[i>>6] &^= 1 << (i & 63)
}

// move has p be a member of to if it is one of s, of which it is none any more.
func (s *slotSet) move(p wire.PSN, to *slotSet) {
	if s.has(p) {
		s.remove(p)
		to.add(p)
	}
}

// untilIn returns how many of the n PSNs from p on come before the first
// member, n if there is none.
func (s *slotSet) untilIn(p wire.PSN, n int) int { return s.scan(p, n, 0) }

// untilOut is untilIn for the first that is not a member.
func (s *slotSet) untilOut(p wire.PSN, n int) int { return s.scan(p, n, ^uint64(0)) }

// scan looks for a set bit, or with flip all ones for a clear one, a word at
// a time.
func (s *slotSet) scan(p wire.PSN, n int, flip uint64) int {
	done := 0
	for done < n {
		i := s.slot(p.Add(uint32(done)))
		bit := i & 63
		span := int(min(64-bit, s.size-i))
		found := bits.TrailingZeros64((s.words[i>>6] ^ flip) >> bit)
		if found < span {
			return min(done+found, n)
		}
		done += span
	}
	return n
}

// membersBefore returns how many of the n PSNs before p are members, from p backwards
// to the first that is none.
func (s *slotSet) membersBefore(p wire.PSN, n int) int {
	done := 0
	for done < n {
		i := s.slot(p.Add(^uint32(done)))
		span := int(i&63) + 1
		found := bits.LeadingZeros64(^s.words[i>>6] << (64 - span))
		if found < span {
			return min(done+found, n)
		}
		done += span
	}
	return n
}
