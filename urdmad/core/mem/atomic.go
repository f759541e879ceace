package mem

import (
	"encoding/binary"
	"sync/atomic"
)

// WordLen is the length and the alignment of an atomic operation's operand.
const WordLen = 8

// AtomicOp is a 64-bit atomic operation as in RFC 7306 section 5.1; the two operations of verbs are special
// cases.
type AtomicOp struct {
	Add         bool   // else Data replaces the operand if that equals Compare
	Data        uint64 // to add or to swap in
	Mask        uint64 // Add: the highest bit of each field that is added separately; else the bits that are replaced
	Compare     uint64
	CompareMask uint64 // the bits that are compared; 0: always equal
}

// apply returns the value that replaces original.
func (op *AtomicOp) apply(original uint64) uint64 {
	switch {
	case op.Add: // without the highest bit of each field, no carry leaves the field
		return ((original &^ op.Mask) + (op.Data &^ op.Mask)) ^ (original^op.Data)&op.Mask
	case (original^op.Compare)&op.CompareMask != 0:
		return original
	}
	return original&^op.Mask | op.Data&op.Mask
}

// applyTo replaces the number in b, which is in the machine's byte order.
func (op *AtomicOp) applyTo(b []byte) {
	binary.NativeEndian.PutUint64(b, op.apply(binary.NativeEndian.Uint64(b)))
}

// Atomic executes op on the word at va, which CheckAtomic has accepted, and returns the original value. It
// is atomic with respect to every other access to the word, including the client's. ok is false for a
// region on the fallback path.
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

// CheckAtomic is CheckRemote for the word at va, with two more checks: va is aligned, and so is the word in
// memory.
func (r *Region) CheckAtomic(va uint64) Violation {
	if va%WordLen != 0 || r.ClientAddr(va)%WordLen != 0 && r.bytes == nil || !r.wordAligned(va) {
		return Misaligned
	}
	return Allowed
}
