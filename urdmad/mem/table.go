package mem

import "math/rand/v2"

// Table maps STags to regions: the upper 24 bits of an STag are an index, the
// lower 8 a key, so a stale or guessed STag seldom hits. Indices are drawn at
// random, so one client cannot infer another's.
type Table struct {
	regions []*Region
	used    int
	rand    *rand.Rand
}

const maxRegions = 1 << 24

// NewTable returns an empty table that draws STags from src.
func NewTable(src rand.Source) *Table {
	return &Table{regions: make([]*Region, 1024), rand: rand.New(src)}
}

// Insert gives r an STag; false when all indices are in use.
func (t *Table) Insert(r *Region) bool {
	if t.used*2 >= len(t.regions) {
		if len(t.regions) == maxRegions {
			return false
		}
		t.regions = append(t.regions, make([]*Region, len(t.regions))...)
	}
	i := t.rand.IntN(len(t.regions))
	for i == 0 || t.regions[i] != nil { // STags below 256 stay unused: 0 is a common mistake
		i = (i + 1) % len(t.regions)
	}
	r.STag = STag(uint32(i)<<8 | uint32(t.rand.IntN(256)))
	t.regions[i] = r
	t.used++
	return true
}

// Lookup returns the region an STag names, or nil.
func (t *Table) Lookup(s STag) *Region {
	i := uint32(s) >> 8
	if i >= uint32(len(t.regions)) {
		return nil
	}
	if r := t.regions[i]; r != nil && r.STag == s {
		return r
	}
	return nil
}

// Remove deregisters r: it is found no more; its pages go when the last work in
// progress releases it.
func (t *Table) Remove(r *Region) {
	i := uint32(r.STag) >> 8
	if i < uint32(len(t.regions)) && t.regions[i] == r {
		t.regions[i] = nil
		t.used--
	}
	r.kill()
}

// Len is the number of registered regions.
func (t *Table) Len() int { return t.used }
