package qp

import (
	"urdma/urdmad/mem"
	"urdma/verbs/abi"
)

// Receive is the receiving side of a queue pair: the receive work request that an
// arriving message fills, one at a time. Take begins it, Scatter fills it, and
// Arrived or End completes it.
type Receive struct {
	q        *QP
	from     *RecvQueue // which it was taken from
	active   bool
	torn     bool // its message will not go on: the receive serves the next one
	id       uint64
	index    uint32 // in that queue
	sges     []element
	nsge     int
	capacity uint32
	got      uint32
}

// Taken says what Take found.
type Taken uint8

const (
	ReceiveTaken    Taken = iota
	NoReceive             // none is posted
	BadReceive            // the one posted was wrong, and has completed with the cause
	ReceiveTooShort       // the one posted has no room for the message; it stays
	NoQueue               // the message names no shared receive queue that there is
)

func (r *Receive) init(q *QP) {
	r.q = q
	r.sges = make([]element, max(q.RQ.maxSGE, 1))
}

// Active reports whether a message is under way, and how many of its bytes were
// scattered.
func (r *Receive) Active() (active bool, got uint32) { return r.active && !r.torn, r.got }

// Room is how many bytes more the current receive takes.
func (r *Receive) Room() uint32 { return r.capacity - r.got }

// Take begins the next receive work request of the queue pair's receive queue.
func (r *Receive) Take() Taken { return r.TakeFrom(r.q.RQ) }

// TakeFrom begins the next receive work request of from.
func (r *Receive) TakeFrom(from *RecvQueue) Taken { return r.take(from, 0) }

// TakeFor begins the next receive work request if it has room for n bytes.
func (r *Receive) TakeFor(n uint32) Taken { return r.take(r.q.RQ, n) }

func (r *Receive) take(from *RecvQueue, need uint32) Taken {
	if r.torn && r.from == from {
		r.torn = false
		r.Rewind()
		return ReceiveTaken
	}
	if r.torn { // of another shared receive queue of the XRC domain
		r.End(abi.CQE{Status: abi.StatusWRFlushErr}, false)
	}
	var rqe abi.RQE
	list := r.q.t.list[:]
	i, ok := from.look(&rqe, list)
	switch {
	case !ok:
		return NoReceive
	case need > 0 && rqe.NumSGE <= from.maxSGE && room(list[:rqe.NumSGE]) < uint64(need):
		return ReceiveTooShort
	}
	from.taken()
	from.checkLimit(r.q.t)
	r.from, r.active, r.id, r.index, r.got, r.capacity, r.nsge = from, true, rqe.WRID, i, 0, 0, 0
	if rqe.NumSGE > from.maxSGE {
		r.End(abi.CQE{Status: abi.StatusLocQPOpErr}, false)
		return BadReceive
	}
	if !r.hold(list[:rqe.NumSGE]) {
		r.End(abi.CQE{Status: abi.StatusLocProtErr}, false)
		return BadReceive
	}
	return ReceiveTaken
}

// room is how many bytes a scatter/gather list takes.
func room(list []abi.SGE) (n uint64) {
	for i := range list {
		n += uint64(list[i].Length)
	}
	return n
}

// hold checks a scatter/gather list and keeps its regions' pages mapped.
func (r *Receive) hold(list []abi.SGE) bool {
	if len(list) > len(r.sges) {
		r.sges = make([]element, len(list)) // of a queue that takes longer lists than the queue pair's own
	}
	pd := r.from.domain(r.q)
	for j := range list {
		el := &list[j]
		if el.Length == 0 {
			continue
		}
		e, ok := r.q.hold(el, pd, mem.LocalWrite)
		if !ok {
			return false
		}
		r.sges[r.nsge] = e
		r.nsge++
		r.capacity += min(el.Length, ^uint32(0)-r.capacity)
	}
	return true
}

// Rewind has the current receive filled from its beginning: what came was part of a
// message that is dropped.
func (r *Receive) Rewind() { r.got = 0 }

// tear ends the message under way, if there is one, whose peer has left.
func (r *Receive) tear() { r.torn = r.active }

// Scatter writes data, for which there is room, where the current receive goes
// on. False: memory of the receive was deregistered; nothing more may be
// written to it.
func (r *Receive) Scatter(data []byte) bool {
	ok := r.q.scatter(r.sges[:r.nsge], r.got, data)
	r.got += uint32(len(data))
	return ok
}

// Arrived ends a message that took a receive and completes it. how says the
// completion's flags and what they announce.
func (r *Receive) Arrived(how abi.CQE, solicited bool) {
	r.q.Stats.MessagesRecv++
	r.q.Stats.BytesRecv += uint64(r.got)
	r.End(how, solicited)
}

// WrittenWith is how a receive completes that a Write with immediate took: n bytes
// were written, not here.
func WrittenWith(imm, n uint32) abi.CQE {
	return abi.CQE{Opcode: abi.WCRecvRDMAWithImm, ByteLen: n, WCFlags: abi.WCWithImm, ImmOrSTag: imm}
}

// End completes the current receive; how says its status, VendorErr, source,
// WCFlags and what they announce, and ByteLen if its Opcode is one.
func (r *Receive) End(how abi.CQE, solicited bool) {
	q := r.q
	w := q.completion(r.id, r.index, how.Status)
	w.VendorErr, w.WCFlags, w.ImmOrSTag = how.VendorErr, how.WCFlags, how.ImmOrSTag
	w.SrcQP, w.SourceLID = how.SrcQP, how.SourceLID
	w.Opcode, w.ByteLen = abi.WCRecv, r.got
	if how.Opcode != 0 {
		w.Opcode, w.ByteLen = how.Opcode, how.ByteLen
	}
	cq := r.completesOn()
	if q.Domain != nil {
		w.UserHandle = 0 // whoever polls has no such queue pair
	}
	r.drop()
	r.from.publish(r.index)
	q.Stats.RecvsPosted++
	q.completeRecv(cq, &w, solicited)
}

func (r *Receive) drop() {
	for i := range r.sges[:r.nsge] {
		r.sges[i].region.Release()
		r.sges[i] = element{}
	}
	r.active, r.torn, r.nsge = false, false, 0
}

// Invalidate unbinds a memory window, as the peer asked (RFC 5040 section 5.3).
func (q *QP) Invalidate(stag mem.STag) mem.Violation { return q.t.Regions.Invalidate(stag, q.user()) }
