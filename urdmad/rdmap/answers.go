package rdmap

import (
	"urdma/urdmad/mem"
	"urdma/wire"
)

// answer is what the peer is owed for one of its Reads: the responder's work
// (RFC 5040 section 5.2).
type answer struct {
	region *mem.Region // held; nil for a Read of 0 bytes
	src    []byte      // nil until staged
	sent   uint32
	mark   uint64
	msn    wire.MSN
	req    wire.ReadRequest
}

// answers is a ring of those: head..tail are owed, next is the one to be sent.
// Its length, IRD, is the flow control: the peer may not ask for more at a time.
type answers struct {
	ring            []answer
	limit           int
	head, now, tail uint32
}

func (a *answers) init(ird uint16) {
	size := 1
	for size < int(ird) {
		size *= 2
	}
	*a = answers{ring: make([]answer, size), limit: int(ird)}
}

func (a *answers) at(i uint32) *answer { return &a.ring[i&uint32(len(a.ring)-1)] }
func (a *answers) open() int           { return int(a.tail - a.head) }
func (a *answers) full() bool          { return a.open() >= a.limit }
func (a *answers) next() *answer       { return a.at(a.now) }
func (a *answers) nextSlot() uint32    { return a.now & uint32(len(a.ring)-1) }
func (a *answers) ready() bool         { return a.now != a.tail && a.at(a.now).src != nil }

// owe appends an answer and returns it.
func (a *answers) owe(v answer) *answer {
	slot := a.at(a.tail)
	*slot = v
	a.tail++
	return slot
}

// sent notes that a segment of at most limit bytes of the next answer went out.
func (a *answers) sent(mark uint64, limit uint32) {
	v := a.next()
	v.sent += min(v.req.Length-v.sent, limit)
	v.mark = mark
	if v.sent == v.req.Length {
		a.now++
	}
}

// acked frees the answers that the peer has.
func (a *answers) acked(mark uint64) {
	for a.head != a.now && a.at(a.head).mark <= mark {
		a.pop()
	}
}

func (a *answers) pop() {
	v := a.at(a.head)
	if v.region != nil {
		v.region.Release()
	}
	*v = answer{}
	a.head++
}

func (a *answers) drop() {
	for a.head != a.tail {
		a.pop()
	}
	a.now = a.head
}

// revoked reports that the source was deregistered: it is the client's own again.
func (v *answer) revoked() bool { return v.region != nil && v.region.Dead() }

// request makes up the Read Request that was owed this answer.
func (v *answer) request() *Segment {
	b := make([]byte, wire.UntaggedLen+wire.ReadRequestLen)
	d := wire.DDP{Last: true, Op: wire.OpReadRequest, QN: wire.QueueReadRequest, MSN: v.msn}
	at := d.Put(b)
	b = b[:at+v.req.Put(b[at:])]
	return &Segment{Head: b, Data: b}
}
