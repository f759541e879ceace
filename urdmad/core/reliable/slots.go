package reliable

import (
	"math/bits"

	"urdma/wire"
)

// slotSet is a set of PSNs within one window, with a bit for each ring slot. The caller makes sure that its
// members never span more than the window, so that a slot belongs to only one PSN.
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

// move moves p from s to to, if it is a member of s.
func (s *slotSet) move(p wire.PSN, to *slotSet) {
	if s.has(p) {
		s.remove(p)
		to.add(p)
	}
}

// distanceToMember returns how many of the n PSNs from p on precede the first member; n if there is none.
func (s *slotSet) distanceToMember(p wire.PSN, n int) int { return s.scan(p, n, 0) }

// distanceToGap returns how many of the n PSNs from p on precede the first non-member; n if there is none.
func (s *slotSet) distanceToGap(p wire.PSN, n int) int { return s.scan(p, n, ^uint64(0)) }

// scan looks for a set bit, or for a clear bit if flip is all ones, a word at a time.
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

// membersBefore returns how many consecutive PSNs immediately before p are members, at most n.
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
