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
		p, q, m, n := PSN(c.p), PSN(c.q), MSN(c.p), MSN(c.q)
		equal := c.p == c.q
		after := !c.before && !equal
		for _, got := range []struct {
			name string
			psn  bool
			msn  bool
			want bool
		}{
			{"Before", p.Before(q), m.Before(n), c.before},
			{"BeforeEq", p.BeforeEq(q), m.BeforeEq(n), c.before || equal},
			{"After", p.After(q), m.After(n), after},
			{"AfterEq", p.AfterEq(q), m.AfterEq(n), after || equal},
		} {
			if got.psn != got.want || got.msn != got.want {
				t.Errorf("%#x %s %#x: PSN %v, MSN %v, want %v", c.p, got.name, c.q, got.psn, got.msn, got.want)
			}
		}
		if p.Sub(q) != c.sub || m.Sub(n) != c.sub {
			t.Errorf("%#x Sub %#x: PSN %d, MSN %d, want %d", c.p, c.q, p.Sub(q), m.Sub(n), c.sub)
		}
		if q.Add(uint32(c.sub)) != p || n.Add(uint32(c.sub)) != m {
			t.Errorf("%#x Add %d: PSN %#x, MSN %#x, want %#x", c.q, c.sub, q.Add(uint32(c.sub)), n.Add(uint32(c.sub)), c.p)
		}
	}
}
