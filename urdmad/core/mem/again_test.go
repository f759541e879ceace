package mem

import (
	"errors"
	"testing"
)

// inUse returns the number of views that are in use.
func (s *Space) inUse() (n int) {
	for _, w := range s.views {
		if w.refs > 0 {
			n++
		}
	}
	return n
}

// TestMapAgain: pages are entered into page tables once for all regions that cover them, and again after none has
// covered them.
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
	if n := s.inUse(); n != 0 {
		t.Errorf("%d views are in use", n)
	}
	s.Unmap(use(0, n, span{0, n}))
}

// counted is a Budget.
type counted struct{ taken, limit int }

var errNoMore = errors.New("no more")

func (c *counted) Take() error {
	if c.taken == c.limit {
		return errNoMore
	}
	c.taken++
	return nil
}

func (c *counted) Give() { c.taken-- }

// TestIdleView: memory that a client registers and deregisters repeatedly is mapped once, and unused views
// cause no failures.
func TestIdleView(t *testing.T) {
	s := space(t, 8*viewAlign)
	budget := &counted{limit: 2}
	s.SetBudget(budget)
	mapping := func(offset, n uint64) Mapping {
		t.Helper()
		m, err := s.Map(1, offset, n)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	first := mapping(0, 10)
	view := first.view
	for range 10 {
		s.Unmap(first)
		first = mapping(pageSize, 10)
		if first.view != view || len(first.fresh) != 1 {
			t.Fatalf("mapped anew, or not as new: %v", first.fresh)
		}
	}
	s.Unmap(first)
	large := mapping(0, viewAlign+1)
	other := mapping(4*viewAlign, 10) // in the place of the idle one
	if _, err := s.Map(1, 6*viewAlign, 10); !errors.Is(err, errNoMore) {
		t.Errorf("a third view: %v", err)
	}
	s.Unmap(large) // of no use to the next: unmapped at once
	if len(s.views) != 1 || budget.taken != 1 {
		t.Errorf("%d views, %d taken, expected one", len(s.views), budget.taken)
	}
	third := mapping(6*viewAlign, 10)
	s.Unmap(other)
	s.Unmap(third) // one of them stays
	if len(s.views) != 1 || budget.taken != 1 || s.idle != third.view {
		t.Errorf("%d views, %d taken, expected the last one", len(s.views), budget.taken)
	}
	s.Close()
	if len(s.views) != 0 || budget.taken != 0 {
		t.Errorf("%d views, %d taken are left", len(s.views), budget.taken)
	}
}
