package reliable

// Records of unacknowledged segments lie in a ring that is as long as it has to be:
// most connections are idle or have a message at a time under way, and a ring for
// a whole window is 32 KiB. A connection begins with leastRing; one that
// fills its ring takes a longer one, and gives it back once all is acknowledged.

// leastRing is how many segments a connection always has records for, a power of
// two.
const leastRing = 16

// spareBytes bounds what a Rings keeps for whoever needs one next.
const (
	spareBytes   = 4 << 20
	segmentBytes = 32
)

// Rings are what connections of one thread take longer rings from. The zero value
// is empty. Without one a connection keeps the longest ring that it ever needed.
type Rings struct {
	spare map[int][][]segment // by the number of segments
	bytes int
}

// take returns a ring of size segments, its records undefined, and the list's head
// behind them.
func (r *Rings) take(size int) []segment {
	if r == nil || len(r.spare[size]) == 0 {
		return make([]segment, size+1)
	}
	list := r.spare[size]
	last := len(list) - 1
	ring := list[last]
	list[last], r.spare[size] = nil, list[:last]
	r.bytes -= segmentBytes * size
	return ring
}

// put takes a ring back that nobody uses any more.
func (r *Rings) put(ring []segment) {
	size := len(ring) - 1
	if r == nil || size <= leastRing || r.bytes+segmentBytes*size > spareBytes {
		return
	}
	if r.spare == nil {
		r.spare = map[int][][]segment{}
	}
	r.spare[size] = append(r.spare[size], ring)
	r.bytes += segmentBytes * size
}

// ring is the number of segments that there are records for.
func (t *sender) ring() int { return len(t.segs) - 1 }

// setRing has t use a ring, whose flight list is empty.
func (t *sender) setRing(ring []segment) {
	t.segs, t.mask = ring, uint32(len(ring)-2)
	head := t.head()
	t.segs[head].prev, t.segs[head].next = head, head
}

// grow takes a longer ring: twice as long as now, or as the last one was, which
// the window allows. The flight list stays in its order.
func (t *sender) grow(rings *Rings) {
	old, oldMask, oldHead := t.segs, t.mask, t.head()
	flying := old[oldHead].next
	size := min(max(2*t.ring(), t.longest), t.window)
	t.longest = size
	una := uint32(t.una)
	t.setRing(rings.take(size))
	for psn := t.una; psn != t.next; psn = psn.Add(1) {
		*t.at(psn) = old[uint32(psn)&oldMask]
	}
	t.flight = 0
	for i := flying; i != oldHead; i = old[i].next {
		psn := t.una.Add((uint32(i) - una) & oldMask)
		t.link(t.index(psn), t.segs[t.head()].prev)
	}
	rings.put(old)
}

// shrink gives a longer ring back while nothing is outstanding.
func (t *sender) shrink(rings *Rings) {
	if rings == nil || t.ring() <= leastRing || t.outstanding() > 0 {
		return
	}
	rings.put(t.segs)
	t.setRing(t.least)
}
