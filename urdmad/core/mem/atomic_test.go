package mem

import "testing"

// TestAtomicOp: masks as in RFC 7306 section 5.1.
func TestAtomicOp(t *testing.T) {
	const all = ^uint64(0)
	for _, c := range []struct {
		name           string
		op             AtomicOp
		original, want uint64
	}{
		{"add", AtomicOp{Add: true, Data: 3}, 5, 8},
		{"add wraps", AtomicOp{Add: true, Data: 2}, all, 1},
		{"add in fields", AtomicOp{Add: true, Data: 0x01_ff_01, Mask: 0x80_80_80}, 0xff_01_7f, 0x00_00_80},
		{"add with the top bit as boundary", AtomicOp{Add: true, Data: 1 << 63, Mask: 1 << 63}, 1 << 63, 0},
		{"swap", AtomicOp{Data: 9, Mask: all}, 5, 9},
		{"swap some bits", AtomicOp{Data: 0xff, Mask: 0xf0}, 0x0a, 0xfa},
		{"compare and swap", AtomicOp{Data: 9, Mask: all, Compare: 5, CompareMask: all}, 5, 9},
		{"compare and leave", AtomicOp{Data: 9, Mask: all, Compare: 6, CompareMask: all}, 5, 5},
		{"compare some bits", AtomicOp{Data: 9, Mask: all, Compare: 0x15, CompareMask: 0xf}, 0x25, 9},
	} {
		if got := c.op.apply(c.original); got != c.want {
			t.Errorf("%s of %#x: %#x, expected %#x", c.name, c.original, got, c.want)
		}
	}
}
