package wire

import "testing"

func TestSerialArithmetic(t *testing.T) {
	for _, c := range []struct {
		p, q   uint32
		before bool
		sub    int32
	}{
		{0, 0, false, 0},
		{0, 1, true, -1},
		{1, 0, false, 1},
		{0xffffffff, 0, true, -1},
		{0, 0xffffffff, false, 1},
		{0xfffffff0, 0x10, true, -0x20},
		{0, 0x7fffffff, true, -0x7fffffff},
		{0x7fffffff, 0, false, 0x7fffffff},
		{0x80000000, 0xffffffff, true, -0x7fffffff},
	} {
		p, q := PSN(c.p), PSN(c.q)
		if after := !c.before && p != q; p.Before(q) != c.before || p.After(q) != after {
			t.Errorf("%#x and %#x: Before %v, After %v, want %v, %v", c.p, c.q, p.Before(q), p.After(q), c.before, after)
		}
		if p.Sub(q) != c.sub {
			t.Errorf("%#x Sub %#x: %d, want %d", c.p, c.q, p.Sub(q), c.sub)
		}
		if q.Add(uint32(c.sub)) != p {
			t.Errorf("%#x Add %d: %#x, want %#x", c.q, c.sub, q.Add(uint32(c.sub)), c.p)
		}
	}
	if m := MSN(0xffffffff).Add(2); m != 1 {
		t.Errorf("MSN %d, want 1", m)
	}
}
