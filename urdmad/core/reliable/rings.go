package reliable

import "urdma/wire"

// Records of unacknowledged segments are in a ring that is only as long as necessary: most connections are
// idle or have one message outstanding, and a ring for a whole window has up to 2 MiB. A connection begins
// with leastRing records. If it fills its ring, it takes a longer one, and returns it once everything is
// acknowledged.

// leastRing is the number of segments for which a connection always has records, a power of two.
const leastRing = 16

// leastHeld is the number of segments past the next one that a connection can always record as held.
const leastHeld = 64

// spareBytes bounds the memory that a Rings keeps for later connections. Rings longer than shortRing have
// an equal bound of their own, because a few of them would leave no space for all others.
const (
	spareBytes   = 8 << 20
	segmentBytes = 32
)

// records are the records of outstanding segments.
type records struct {
	// segs is a ring indexed by PSN, whose length is a power of two, plus one element: the head of the
	// flight list. That list is sorted by order, so that lost segments are a prefix of it.
	segs   []segment
	sacked slotSet
	lost   slotSet
}

func newRecords(size int) records {
	return records{segs: make([]segment, size+1), sacked: newSlotSet(size), lost: newSlotSet(size)}
}

// ring returns the number of segments for which there are records.
func (r *records) ring() int               { return len(r.segs) - 1 }
func (r *records) mask() uint32            { return uint32(len(r.segs) - 2) }
func (r *records) head() uint32            { return uint32(len(r.segs) - 1) }
func (r *records) index(p wire.PSN) uint32 { return uint32(p) & r.mask() }

// Rings keeps longer rings for the connections of one thread. The zero value is empty. Without a Rings a
// connection keeps the longest ring that it ever needed.
type Rings struct {
	spare spares[records]
	held  spares[slotSet] // all of them empty
	bytes int             // total of rings for at most shortRing segments
	long  int             // total of longer rings
}

// shortRing is the number of segments of the longest short ring.
const shortRing = 2048

// kept returns the byte count for rings for size segments.
func (r *Rings) kept(size int) *int {
	if size > shortRing {
		return &r.long
	}
	return &r.bytes
}

// take returns records for size segments, undefined except that none is sacked or lost.
func (r *Rings) take(size int) records {
	if r != nil {
		if ring, ok := r.spare.take(size); ok {
			*r.kept(size) -= segmentBytes * size
			return ring
		}
	}
	return newRecords(size)
}

// put takes back unused records, none of them sacked or lost.
func (r *Rings) put(ring records) {
	size := ring.ring()
	if size > leastRing && r.mayKeep(size, segmentBytes*size) {
		r.spare.put(size, ring)
	}
}

// takeHeld and putHeld are take and put for a receiver's set of held segments.
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

// mayKeep adds bytes, for size segments, to the kept bytes unless that exceeds the bound.
func (r *Rings) mayKeep(size, bytes int) bool {
	if r == nil || *r.kept(size)+bytes > spareBytes {
		return false
	}
	*r.kept(size) += bytes
	return true
}

// spares are unused objects, by the number of segments that each can hold.
type spares[T any] map[int][]T

// take returns the object that was put last.
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

// setRing makes t use records, whose flight list is empty.
func (t *sender) setRing(ring records) {
	t.records = ring
	head := t.head()
	t.segs[head].prev, t.segs[head].next = head, head
}

// grow takes a longer ring: twice as long as the present one, or as long as was needed before the last one
// was returned, within the window. The flight list keeps its order.
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

// shrink returns a longer ring while nothing is outstanding.
func (t *sender) shrink(rings *Rings) {
	if rings == nil || t.ring() <= leastRing || t.outstanding() > 0 {
		return
	}
	t.needed, t.most = WindowSize(t.most), 0
	rings.put(t.records)
	t.setRing(t.least)
}

// growHeld makes room to record as held the segment that is ahead segments past the next one.
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

// shrinkHeld returns a larger set while no segment is held.
func (r *receiver) shrinkHeld() {
	if r.rings == nil || r.nHeld > 0 || r.held.size <= leastHeld {
		return
	}
	r.rings.putHeld(r.held)
	r.held = r.rings.takeHeld(leastHeld)
}
