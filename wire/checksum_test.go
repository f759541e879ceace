package wire

import "testing"

// slowSum is RFC 1071 word for word.
func slowSum(b []byte) uint16 {
	var s uint32
	for i := 0; i < len(b); i += 2 {
		w := uint32(b[i]) << 8
		if i+1 < len(b) {
			w |= uint32(b[i+1])
		}
		s += w
		s = s>>16 + s&0xffff
	}
	return uint16(s)
}

// sameSum compares one's complement sums, in which 0 and 0xffff are equal
// unless every byte is 0.
func sameSum(a, b uint16) bool {
	return a == b || a%0xffff == 0 && b%0xffff == 0
}

func TestChecksumEveryLength(t *testing.T) {
	r := newRand(t)
	for n := range 300 {
		b := randBytes(r, n)
		if got, want := Fold(Checksum(0, b)), slowSum(b); !sameSum(got, want) {
			t.Fatalf("%d bytes: sum %#04x, want %#04x", n, got, want)
		}
	}
}

func TestChecksumExtremes(t *testing.T) {
	ones := make([]byte, 9001)
	for i := range ones {
		ones[i] = 0xff
	}
	for _, b := range [][]byte{nil, {}, make([]byte, 9000), ones[:8948], ones[:8949], ones[:1], ones} {
		if got, want := Fold(Checksum(0, b)), slowSum(b); got != want {
			t.Errorf("%d bytes: sum %#04x, want %#04x", len(b), got, want)
		}
		// A sum of all ones must add the carries back in.
		if got, want := Fold(Checksum(^uint64(0), b)), slowSum(b); !sameSum(got, want) {
			t.Errorf("%d bytes onto all ones: sum %#04x, want %#04x", len(b), got, want)
		}
	}
}

func TestChecksumPieces(t *testing.T) {
	r := newRand(t)
	for range 3000 {
		b := randBytes(r, r.IntN(400))
		var sum uint64
		for off := 0; off < len(b); {
			n := min(2+2*r.IntN(len(b)), len(b)-off)
			sum = Checksum(sum, b[off:off+n])
			off += n
		}
		if got, want := Fold(sum), slowSum(b); !sameSum(got, want) {
			t.Fatalf("% x in pieces: sum %#04x, want %#04x", b, got, want)
		}
	}
}

func TestChecksumNoticesEveryBit(t *testing.T) {
	b := randBytes(newRand(t), 131)
	want := Fold(Checksum(0, b))
	for i := range b {
		for bit := range 8 {
			b[i] ^= 1 << bit
			if Fold(Checksum(0, b)) == want {
				t.Errorf("bit %d of byte %d changes nothing", bit, i)
			}
			b[i] ^= 1 << bit
		}
	}
}
