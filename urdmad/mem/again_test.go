package mem

import "testing"

// TestMapAgain: pages are entered once for all regions that cover them, and again
// when none has.
func TestMapAgain(t *testing.T) {
	const n = 1 << 20
	s := space(t, 64<<20)
	use := func(offset, n uint64, want ...span) Mapping {
		t.Helper()
		m, err := s.Map(1, offset, n)
		if err != nil {
			t.Fatal(err)
		}
		if len(m.fresh) != len(want) {
			t.Fatalf("%d bytes at %d: fresh %v, expected %v", n, offset, m.fresh, want)
		}
		for i, f := range m.fresh {
			if f != want[i] {
				t.Fatalf("%d bytes at %d: fresh %v, expected %v", n, offset, m.fresh, want)
			}
		}
		return m
	}
	first := use(0, n, span{0, n})
	second := use(0, n)
	inside := use(n/2+1, 10)
	s.Unmap(first)
	third := use(0, n)
	beyond := use(n-1, pageSize+1, span{n, n + pageSize})
	s.Unmap(second)
	s.Unmap(third)
	again := use(0, n, span{0, n / 2}, span{n/2 + pageSize, n - pageSize})
	for _, m := range []Mapping{inside, beyond, again} {
		s.Unmap(m)
	}
	if len(s.views) != 0 {
		t.Errorf("%d views are left", len(s.views))
	}
	s.Unmap(use(0, n, span{0, n}))
}
