package reliable

import "urdma/wire"

// Records of unacknowledged segments lie in a ring that is as long as it has to be:
// most connections are idle or have a message at a time under way, and a ring for
// a whole window is 32 KiB, or 2 MiB for a wide one. A connection begins with
// leastRing; one that fills its ring takes a longer one, and gives it back once all is
// acknowledged.

// leastRing is how many segments a connection always has records for, a power of
// two.
const leastRing = 16

// leastHeld is for how many segments past the next one a connection always has room to
// note that they are held.
const leastHeld = 64

// spareBytes bounds what a Rings keeps for the next connection that needs one: as much again of rings
// beyond MaxWindow, of which a few would else leave no room for all others.
const (
	spareBytes   = 8 << 20
	segmentBytes = 32
)

// records are those of outstanding segments.
type records struct {
	// segs is a ring by PSN, a power of two long; one more element behind it is the
	// head of the flight list, which is sorted by order, so that losses are a prefix.
	segs   []segment
	sacked slotSet
	lost   slotSet
}

func newRecords(size int) records {
	return records{segs: make([]segment, size+1), sacked: newSlotSet(size), lost: newSlotSet(size)}
}

// ring is the number of segments that there are records for.
func (r *records) ring() int               { return len(r.segs) - 1 }
func (r *records) mask() uint32            { return uint32(len(r.segs) - 2) }
func (r *records) head() uint32            { return uint32(len(r.segs) - 1) }
func (r *records) index(p wire.PSN) uint32 { return uint32(p) & r.mask() }

// Rings are what connections of one thread take longer rings from. The zero value
// is empty. Without one a connection keeps the longest ring that it ever needed.
type Rings struct {
	spare spares[records]
	held  spares[slotSet] // none of them with members
	bytes int             // of those up to MaxWindow
	wide  int             // of the others
}

// kept is how many bytes are kept of rings like one for size segments.
func (r *Rings) kept(size int) *int {
	if size > MaxWindow {
		return &r.wide
	}
	return &r.bytes
}

// take returns records for size segments, undefined but that none is sacked or lost.
func (r *Rings) take(size int) records {
	if r != nil {
		if ring, ok := r.spare.take(size); ok {
			*r.kept(size) -= segmentBytes * size
			return ring
		}
	}
	return newRecords(size)
}

// put takes records back that nobody uses any more, none of them sacked or lost.
func (r *Rings) put(ring records) {
	size := ring.ring()
	if size > leastRing && r.mayKeep(size, segmentBytes*size) {
		r.spare.put(size, ring)
	}
}

// takeHeld and putHeld are take and put for what a receiver holds.
func (r *Rings) takeHeld(size int) slotSet {
	if r != nil {
		if set, ok := r.held.take(size); ok {
			*r.kept(size) -= size / 8
			return set
		}
	}
	return newSlotSet(size)
}

func (r *Rings) putHeld(set slotSet) {
	if size := int(set.size); r.mayKeep(size, size/8) {
		r.held.put(size, set)
	}
}

// mayKeep counts so many bytes of something for size segments as kept, if they may be.
func (r *Rings) mayKeep(size, bytes int) bool {
	if r == nil || *r.kept(size)+bytes > spareBytes {
		return false
	}
	*r.kept(size) += bytes
	return true
}

// spares are what nobody uses, by the number of segments that it is for.
type spares[T any] map[int][]T

// take takes one that was put there last.
func (s spares[T]) take(size int) (one T, ok bool) {
	list := s[size]
	if len(list) == 0 {
		return one, false
	}
	last := len(list) - 1
	list[last], one = one, list[last]
	s[size] = list[:last]
	return one, true
}

func (s *spares[T]) put(size int, one T) {
	if *s == nil {
		*s = spares[T]{}
	}
	(*s)[size] = append((*s)[size], one)
}

// setRing has t use records, whose flight list is empty.
func (t *sender) setRing(ring records) {
	t.records = ring
	head := t.head()
	t.segs[head].prev, t.segs[head].next = head, head
}

// grow takes a longer ring: twice as long as now, or as was needed before the last was
// given back, which the window allows. The flight list stays in its order.
func (t *sender) grow(rings *Rings) {
	old := t.records
	size := min(max(2*old.ring(), t.needed), t.window)
	t.setRing(rings.take(size))
	for psn := t.una; psn != t.next; psn = psn.Add(1) {
		*t.at(psn) = old.segs[old.index(psn)]
		old.sacked.move(psn, &t.sacked)
		old.lost.move(psn, &t.lost)
	}
	t.flight = 0
	for i := old.segs[old.head()].next; i != old.head(); i = old.segs[i].next {
		psn := t.una.Add((i - uint32(t.una)) & old.mask())
		t.link(t.index(psn), t.segs[t.head()].prev)
	}
	rings.put(old)
}

// shrink gives a longer ring back while nothing is outstanding.
func (t *sender) shrink(rings *Rings) {
	if rings == nil || t.ring() <= leastRing || t.outstanding() > 0 {
		return
	}
	t.needed, t.most = WindowSize(t.most), 0
	rings.put(t.records)
	t.setRing(t.least)
}

// growHeld makes room to hold the segment so far past the next one.
func (r *receiver) growHeld(ahead int) {
	size := int(r.held.size)
	if ahead < size {
		return
	}
	for size <= ahead {
		size *= 2
	}
	old := r.held
	r.held = r.rings.takeHeld(size)
	for psn := r.next; psn != r.end; psn = psn.Add(1) {
		old.move(psn, &r.held)
	}
	r.rings.putHeld(old)
}

// shrinkHeld gives room for many back while none is held.
func (r *receiver) shrinkHeld() {
	if r.rings == nil || r.nHeld > 0 || r.held.size <= leastHeld {
		return
	}
	r.rings.putHeld(r.held)
	r.held = r.rings.takeHeld(leastHeld)
}
