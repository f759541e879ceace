package mem

import "math/rand/v2"

// Table maps STags to regions and to what windows are bound to. An STag is 32
// random bits, so a guess has the same small chance everywhere, and a stale
// one seldom hits. Its upper 24 bits, the index, are in use once; the others, the
// key, a window's program chooses anew for each bind.
//
// The table is open-addressed with linear probing: indices are random, so their
// low bits are as good as any hash.
type Table struct {
	slots []*Region // a power of two, at most half of them used; a window that is not bound has a dead region
	used  int
	rand  *rand.Rand
	gone  [64]Gone // the last that were deregistered, in a ring
	last  int      // of them, the newest
}

// Gone is what is known of a region that was deregistered.
type Gone struct {
	STag         STag // 0: none
	PD           uint64
	Base, Length uint64
}

// Gone is the region that an STag has named until not long ago.
func (t *Table) Gone(s STag) (g Gone, ok bool) {
	for i := range t.gone { // the newest first
		g = t.gone[(t.last-i+len(t.gone))%len(t.gone)]
		if g.STag == s {
			return g, s != 0
		}
	}
	return Gone{}, false
}

const (
	minSlots   = 1024
	maxRegions = 1 << 23 // half of all indices
	keyBits    = 8
	reserved   = 256 // STags below stay unused: 0 is a common mistake
)

// NewTable returns an empty table that draws STags from src, which should be
// hard to predict.
func NewTable(src rand.Source) *Table {
	return &Table{slots: make([]*Region, minSlots), rand: rand.New(src)}
}

func (t *Table) mask() uint32 { return uint32(len(t.slots) - 1) }

func (s STag) index() uint32 { return uint32(s) >> keyBits }

// Insert gives r an STag, that which it has already if nothing else has that index; false
// when there are as many regions as there may be.
func (t *Table) Insert(r *Region) bool {
	if t.used == maxRegions {
		return false
	}
	if 2*(t.used+1) > len(t.slots) {
		t.grow()
	}
	for r.STag < reserved || t.taken(r.STag) {
		r.STag = STag(t.rand.Uint32())
	}
	t.put(r)
	t.used++
	return true
}

// Replace deregisters old and gives r its STag, at once: nobody finds the STag
// meanwhile to name nothing.
func (t *Table) Replace(old, r *Region) {
	if i, ok := t.find(old.STag); ok && t.slots[i] == old {
		r.STag = old.STag
		t.slots[i] = r
	}
	old.kill()
}

func (t *Table) put(r *Region) {
	i := r.STag.index() & t.mask()
	for t.slots[i] != nil {
		i = (i + 1) & t.mask()
	}
	t.slots[i] = r
}

func (t *Table) grow() {
	old := t.slots
	t.slots = make([]*Region, 2*len(old))
	for _, r := range old {
		if r != nil {
			t.put(r)
		}
	}
}

// find returns the slot of an STag's index; ok is false if nothing has it.
func (t *Table) find(s STag) (i uint32, ok bool) {
	for i = s.index() & t.mask(); t.slots[i] != nil; i = (i + 1) & t.mask() {
		if t.slots[i].STag.index() == s.index() {
			return i, true
		}
	}
	return 0, false
}

func (t *Table) taken(s STag) bool {
	_, ok := t.find(s)
	return ok
}

// Lookup returns the region that an STag names, or the part of one that a window
// is bound to; or nil.
func (t *Table) Lookup(s STag) *Region {
	i, ok := t.find(s)
	if !ok || t.slots[i].STag != s || t.slots[i].Dead() {
		return nil
	}
	return t.slots[i]
}

// Remove deregisters r: it is found no more; its pages go when the last work in
// progress releases it.
func (t *Table) Remove(r *Region) {
	if i, ok := t.find(r.STag); ok && t.slots[i] == r {
		t.clear(i)
		t.used--
		t.last = (t.last + 1) % len(t.gone)
		t.gone[t.last] = Gone{r.STag, r.PD, r.base, r.length}
	}
	r.kill()
}

// clear empties slot i and moves up those behind it that probing would no longer
// find.
func (t *Table) clear(i uint32) {
	for j := (i + 1) & t.mask(); t.slots[j] != nil; j = (j + 1) & t.mask() {
		home := t.slots[j].STag.index() & t.mask()
		if (j-home)&t.mask() >= (j-i)&t.mask() {
			t.slots[i], i = t.slots[j], j
		}
	}
	t.slots[i] = nil
}

// Len is the number of regions and windows.
func (t *Table) Len() int { return t.used }
