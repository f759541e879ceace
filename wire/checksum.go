package wire

import (
	"encoding/binary"
	"math/bits"
)

// The Internet checksum (RFC 1071), computed in 64-bit words.
//
// An unfinished sum is an opaque 64-bit one's complement number. The pieces are loaded as little-endian words and
// Fold swaps the bytes once at the end: the checksum does not depend on the byte order. Start with 0, pass each
// result to the next call, and finish with Fold. Every piece but the last must have an even length, or is padded to
// one.

// Checksum adds b, of any length, to sum.
func Checksum(sum uint64, b []byte) uint64 {
	var c uint64
	for len(b) >= 64 {
		w := b[:64]
		sum, c = bits.Add64(sum, binary.LittleEndian.Uint64(w[0:]), 0)
		sum, c = bits.Add64(sum, binary.LittleEndian.Uint64(w[8:]), c)
		sum, c = bits.Add64(sum, binary.LittleEndian.Uint64(w[16:]), c)
		sum, c = bits.Add64(sum, binary.LittleEndian.Uint64(w[24:]), c)
		sum, c = bits.Add64(sum, binary.LittleEndian.Uint64(w[32:]), c)
		sum, c = bits.Add64(sum, binary.LittleEndian.Uint64(w[40:]), c)
		sum, c = bits.Add64(sum, binary.LittleEndian.Uint64(w[48:]), c)
		sum, c = bits.Add64(sum, binary.LittleEndian.Uint64(w[56:]), c)
		sum, _ = bits.Add64(sum, 0, c)
		b = b[64:]
	}
	for len(b) >= 8 {
		sum = addWord(sum, binary.LittleEndian.Uint64(b))
		b = b[8:]
	}
	return addWord(sum, tailWord(b))
}

// tailWord packs the last 0 to 7 bytes into one word, padded with zeros.
func tailWord(b []byte) uint64 {
	var w uint64
	var shift uint
	if len(b) >= 4 {
		w = uint64(binary.LittleEndian.Uint32(b))
		b, shift = b[4:], 32
	}
	if len(b) >= 2 {
		w |= uint64(binary.LittleEndian.Uint16(b)) << shift
		b, shift = b[2:], shift+16
	}
	if len(b) == 1 {
		w |= uint64(b[0]) << shift
	}
	return w
}

// addWord is one's complement addition: it adds the carry to the sum. Adding the carry cannot overflow again,
// because a sum that overflowed is at most 2^64-2.
func addWord(sum, w uint64) uint64 {
	s, c := bits.Add64(sum, w, 0)
	return s + c
}

// addUint16 adds one 16-bit header field, given in host order.
func addUint16(sum uint64, v uint16) uint64 {
	return addWord(sum, uint64(bits.ReverseBytes16(v)))
}

// Fold finishes a sum. It returns the 16-bit one's complement sum in host order, not complemented. The field to
// send is ^Fold(sum), stored big-endian; bytes that include a correct checksum field fold to 0xffff.
func Fold(sum uint64) uint16 {
	s := sum>>32 + sum&0xffffffff
	s = s>>16 + s&0xffff
	s = s>>16 + s&0xffff
	s = s>>16 + s&0xffff
	return bits.ReverseBytes16(uint16(s))
}
