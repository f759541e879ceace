package mem

import "math/rand/v2"

// Table maps STags to regions and to what windows are bound to. An STag is 32
// random bits, so a guess has the same small chance everywhere, and a stale
// one seldom hits. Its upper 24 bits, the index, are in use once; the others, the
// key, a window's program chooses anew for each bind.
//
// The table is extendible hashing: a segment that is half full becomes two, which by an
// Insert happens to one of them, so that none takes long. Within a segment addresses are
// open, with linear probing: indices are random, so their bits are as good as any hash.
type Table struct {
	segments []*segment // by the lowest bits of an index, a power of two; several may be the same one
	used     int
	rand     *rand.Rand
	gone     [64]Gone // the last that were deregistered, in a ring
	last     int      // of them, the newest
}

// segment is what has the same lowest bits of the index.
type segment struct {
	slots [segmentSlots]*Region // at most half of them used; a window that is not bound has a dead region
	used  int
	bits  uint // that are the same
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
	homeBits     = 10 // the highest of an index: where probing begins
	segmentSlots = 1 << homeBits
	maxRegions   = 1 << 23 // half of all indices
	keyBits      = 8
	reserved     = 256 // STags below stay unused: 0 is a common mistake
)

// NewTable returns an empty table that draws STags from src, which should be
// hard to predict.
func NewTable(src rand.Source) *Table {
	return &Table{segments: []*segment{{}}, rand: rand.New(src)}
}

func (s STag) index() uint32 { return uint32(s) >> keyBits }

func (s STag) home() uint32 { return uint32(s) >> (32 - homeBits) }

func (t *Table) segment(s STag) *segment { return t.segments[s.index()&uint32(len(t.segments)-1)] }

// Insert gives r an STag, that which it has already if nothing else has that index; false
// when there are as many regions as there may be.
func (t *Table) Insert(r *Region) bool {
	if t.used == maxRegions {
		return false
	}
	for r.STag < reserved || t.taken(r.STag) {
		r.STag = STag(t.rand.Uint32())
	}
	for 2*(t.segment(r.STag).used+1) > segmentSlots {
		t.split(t.segment(r.STag))
	}
	t.segment(r.STag).put(r)
	t.used++
	return true
}

// Replace deregisters old and gives r its STag, at once: nobody finds the STag
// meanwhile to name nothing.
func (t *Table) Replace(old, r *Region) {
	if slot := t.find(old.STag); slot != nil && *slot == old {
		r.STag = old.STag
		*slot = r
	}
	old.kill()
}

// split makes two segments of one.
func (t *Table) split(g *segment) {
	if 1<<g.bits == len(t.segments) {
		t.segments = append(t.segments, t.segments...)
	}
	halves := [2]*segment{{bits: g.bits + 1}, {bits: g.bits + 1}}
	for _, r := range &g.slots {
		if r != nil {
			halves[r.STag.index()>>g.bits&1].put(r)
		}
	}
	for i := range t.segments {
		if t.segments[i] == g {
			t.segments[i] = halves[i>>g.bits&1]
		}
	}
}

func (g *segment) put(r *Region) {
	i := r.STag.home()
	for g.slots[i] != nil {
		i = (i + 1) % segmentSlots
	}
	g.slots[i] = r
	g.used++
}

// find returns the slot of an STag's index; nil if nothing has it.
func (t *Table) find(s STag) **Region {
	g := t.segment(s)
	for i := s.home(); g.slots[i] != nil; i = (i + 1) % segmentSlots {
		if g.slots[i].STag.index() == s.index() {
			return &g.slots[i]
		}
	}
	return nil
}

func (t *Table) taken(s STag) bool { return t.find(s) != nil }

// Lookup returns the region that an STag names, or the part of one that a window
// is bound to; or nil.
func (t *Table) Lookup(s STag) *Region {
	slot := t.find(s)
	if slot == nil || (*slot).STag != s || (*slot).Dead() {
		return nil
	}
	return *slot
}

// Remove deregisters r: it is found no more; its pages go when the last work in
// progress releases it.
func (t *Table) Remove(r *Region) {
	if slot := t.find(r.STag); slot != nil && *slot == r {
		t.segment(r.STag).clear(r)
		t.used--
		t.last = (t.last + 1) % len(t.gone)
		t.gone[t.last] = Gone{r.STag, r.PD, r.base, r.length}
	}
	r.kill()
}

// clear empties the slot of r and moves up those behind it that probing would no longer
// find.
func (g *segment) clear(r *Region) {
	i := r.STag.home()
	for g.slots[i] != r {
		i = (i + 1) % segmentSlots
	}
	for j := (i + 1) % segmentSlots; g.slots[j] != nil; j = (j + 1) % segmentSlots {
		if (j-g.slots[j].STag.home())%segmentSlots >= (j-i)%segmentSlots {
			g.slots[i], i = g.slots[j], j
		}
	}
	g.slots[i] = nil
	g.used--
}

// Len is the number of regions and windows.
func (t *Table) Len() int { return t.used }
