package mem

import "math/rand/v2"

// Table maps STags to regions and to the parts to which windows are bound. An STag is 32 random bits, so
// every guess has the same small chance, and an old STag rarely matches. Its upper 24 bits, the index, are
// unique; the lower 8 bits, the key, are chosen by a window's program for each bind.
//
// The table uses extendible hashing: a segment that is half full is split in two. An Insert splits only one
// segment, so no Insert takes long. A segment uses open addressing with linear probing; indices are random,
// so their bits serve as the hash.
type Table struct {
	segments []*segment // by the lowest bits of an index, length a power of two; entries may share a segment
	used     int
	rand     *rand.Rand
	gone     [64]Gone // a ring of the last deregistered regions
	last     int      // index of the newest in gone
}

// segment has the regions whose indices have the same lowest bits.
type segment struct {
	slots [segmentSlots]*Region // at most half of them used; an unbound window has a dead region
	used  int
	bits  uint // number of lowest bits that are the same
}

// Gone describes a region that was deregistered.
type Gone struct {
	STag         STag // 0: none
	PD           uint64
	Base, Length uint64
}

// Gone returns the region that had an STag until recently.
func (t *Table) Gone(s STag) (g Gone, ok bool) {
	for i := range t.gone { // newest first
		g = t.gone[(t.last-i+len(t.gone))%len(t.gone)]
		if g.STag == s {
			return g, s != 0
		}
	}
	return Gone{}, false
}

const (
	homeBits     = 10 // the highest bits of an index select the slot at which probing begins
	segmentSlots = 1 << homeBits
	maxRegions   = 1 << 23 // half of all indices
	keyBits      = 8
	reserved     = 256 // STags below this are unused: 0 is a common mistake
)

// NewTable returns an empty table that draws STags from src, which should be hard to predict.
func NewTable(src rand.Source) *Table {
	return &Table{segments: []*segment{{}}, rand: rand.New(src)}
}

func (s STag) index() uint32 { return uint32(s) >> keyBits }

func (s STag) home() uint32 { return uint32(s) >> (32 - homeBits) }

func (t *Table) segment(s STag) *segment { return t.segments[s.index()&uint32(len(t.segments)-1)] }

// Insert gives r an STag: the one it already has if no other region has that index, else a new one. It
// returns false if the table is full.
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

// Replace deregisters old and gives r its STag, in one step: a lookup never finds the STag unused.
func (t *Table) Replace(old, r *Region) {
	if slot := t.find(old.STag); slot != nil && *slot == old {
		r.STag = old.STag
		*slot = r
	}
	old.kill()
}

// split divides a segment into two.
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

// find returns the slot of an STag's index; nil if no region has it.
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

// Lookup returns the region of an STag, or the part to which a window is bound; nil if there is none.
func (t *Table) Lookup(s STag) *Region {
	slot := t.find(s)
	if slot == nil || (*slot).STag != s || (*slot).Dead() {
		return nil
	}
	return *slot
}

// Remove deregisters r: lookups no longer find it. Its memory is unmapped when the last operation in
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

// clear empties the slot of r and moves up later entries that probing would otherwise no longer find.
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

// Len returns the number of regions and windows.
func (t *Table) Len() int { return t.used }
