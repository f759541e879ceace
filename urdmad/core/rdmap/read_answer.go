package rdmap

import (
	"slices"

	"urdma/urdmad/core/qp"
	"urdma/wire"
)

// answer is an answer to one of the peer's Reads or atomics, still to be sent or acknowledged: the work of
// a responder (RFC 5040 section 5.2).
type answer struct {
	source qp.Source
	atomic *atomicAnswer // of an atomic: of the other fields only sent and mark are used
	sent   uint32
	mark   uint64
	msn    wire.MSN
	req    wire.ReadRequest
}

// answers is a ring of answers: head..tail are unacknowledged, now is the next to send. Its length, IRD, is
// the flow control: the peer may not have more requests outstanding. While it is empty no ring is
// allocated: most streams serve no Read most of the time.
type answers struct {
	ring            []answer // nil, or of length size
	rings           *answerRings
	size            int // a power of two
	limit           int
	head, now, tail uint32
}

// answerRings are unused, cleared rings for the streams of a worker.
type answerRings struct{ spare [][]answer }

const maxSpareRings = 64

func (r *answerRings) take(size int) []answer {
	for i := len(r.spare) - 1; i >= 0; i-- {
		if ring := r.spare[i]; len(ring) == size {
			r.spare = slices.Delete(r.spare, i, i+1)
			return ring
		}
	}
	return make([]answer, size)
}

func (r *answerRings) put(ring []answer) {
	if ring != nil && len(r.spare) < maxSpareRings {
		r.spare = append(r.spare, ring)
	}
}

func (a *answers) init(ird uint16, rings *answerRings) {
	size := 1
	for size < int(ird) {
		size *= 2
	}
	*a = answers{rings: rings, size: size, limit: int(ird)}
}

func (a *answers) at(i uint32) *answer { return &a.ring[i&uint32(a.size-1)] }
func (a *answers) open() int           { return int(a.tail - a.head) }
func (a *answers) full() bool          { return a.open() >= a.limit }
func (a *answers) next() *answer       { return a.at(a.now) }
func (a *answers) nextSlot() uint32    { return a.now & uint32(a.size-1) }

// ready reports whether the next answer has a segment to send; if not, it makes sure that there will be one
// soon.
func (a *answers) ready() bool {
	if a.now == a.tail {
		return false
	}
	v := a.at(a.now)
	if v.atomic != nil {
		return v.atomic.done
	}
	return v.source.Available(v.sent)
}

// owe appends an answer and returns it.
func (a *answers) owe(v answer) *answer {
	if a.ring == nil {
		a.ring = a.rings.take(a.size)
	}
	slot := a.at(a.tail)
	*slot = v
	a.tail++
	return slot
}

// sent records that a segment of at most limit bytes of the next answer was sent.
func (a *answers) sent(mark uint64, limit uint32) {
	v := a.next()
	v.sent += v.source.Run(v.sent, limit)
	v.mark = mark
	v.source.Sent(v.sent, mark)
	if v.sent == v.req.Length {
		a.now++
	}
}

// acked removes the answers that the peer has.
func (a *answers) acked(mark uint64) {
	for a.head != a.now && a.at(a.head).mark <= mark {
		a.pop()
	}
	for i := a.head; i != a.tail && i != a.now+1; i++ {
		a.at(i).source.Acked(mark)
	}
}

func (a *answers) pop() {
	v := a.at(a.head)
	v.source.Release()
	*v = answer{}
	if a.head++; a.head == a.tail {
		a.rings.put(a.ring)
		a.ring = nil
	}
}

func (a *answers) drop() {
	for a.head != a.tail {
		a.pop()
	}
	a.now = a.head
}

// request reconstructs the Read Request that belongs to the answer.
func (v *answer) request() *Segment {
	b := make([]byte, wire.UntaggedLen+wire.ReadRequestLen)
	d := wire.DDP{Last: true, Op: wire.OpReadRequest, QN: wire.QueueReadRequest, MSN: v.msn}
	at := d.Put(b)
	b = b[:at+v.req.Put(b[at:])]
	return &Segment{Head: b, Data: b}
}
