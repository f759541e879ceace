package mem

import (
	"encoding/binary"
	"sync/atomic"
)

// WordLen is the length of what an atomic operation works on, and its alignment.
const WordLen = 8

// AtomicOp is a 64-bit atomic operation, as RFC 7306 section 5.1 has them: verbs'
// two are among them.
type AtomicOp struct {
	Add         bool   // else Data is swapped in where what is there equals Compare
	Data        uint64 // to add or to swap in
	Mask        uint64 // Add: the topmost bits of the fields that are added apart; else the bits that change
	Compare     uint64
	CompareMask uint64 // the bits that are compared; 0: always equal
}

// apply is what replaces original.
func (op *AtomicOp) apply(original uint64) uint64 {
	switch {
	case op.Add: // without the topmost bit of each field nothing is carried beyond it
		return ((original &^ op.Mask) + (op.Data &^ op.Mask)) ^ (original^op.Data)&op.Mask
	case (original^op.Compare)&op.CompareMask != 0:
		return original
	}
	return original&^op.Mask | op.Data&op.Mask
}

// applyTo replaces the number in b, in the machine's byte order.
func (op *AtomicOp) applyTo(b []byte) {
	binary.NativeEndian.PutUint64(b, op.apply(binary.NativeEndian.Uint64(b)))
}

// Atomic carries op out on the word at va, which CheckAtomic has accepted, and
// returns what was there before. It is atomic against every other access to the
// word, also the client's own. ok is false for a region on the fallback path.
func (r *Region) Atomic(va uint64, op *AtomicOp) (original uint64, ok bool) {
	word := r.word(va)
	if word == nil {
		return 0, false
	}
	for {
		original = atomic.LoadUint64(word)
		if atomic.CompareAndSwapUint64(word, original, op.apply(original)) {
			return original, true
		}
	}
}

// CheckAtomic adds to CheckRemote's checks that the word at va is aligned, as the
// peer names it and in memory.
func (r *Region) CheckAtomic(va uint64) Violation {
	if va%WordLen != 0 || r.ClientAddr(va)%WordLen != 0 && r.bytes == nil || !r.wordAligned(va) {
		return Misaligned
	}
	return Allowed
}
