package qp

import (
	"urdma/reason"
	"urdma/urdmad/core/mem"
	"urdma/verbs/abi"
)

// BeginReceive takes the receive work request for a message. If q is of type XRC_RECV, it comes
// from the shared receive queue number srqn of the XRC domain, else from q's receive queue. A
// receive with less room than atLeast bytes stays there.
func (q *QP) BeginReceive(srqn, atLeast uint32) Verdict {
	q.t.heardFrom(q)
	from := q.RQ
	switch q.Type {
	case abi.QPTypeXRCSend:
		return Verdict{Is: NoQueue} // an XRC_SEND queue pair receives no messages
	case abi.QPTypeXRCRecv:
		if from = q.Domain.queues[srqn]; from == nil {
			return Verdict{Is: NoQueue}
		}
	}
	if q.backlogged(from.owner(q)) {
		return Verdict{Is: Busy}
	}
	return Verdict{Is: q.Recv.take(from, atLeast)}
}

// take begins the next receive work request of from. A receive with less room than need bytes
// stays there.
func (r *Receive) take(from *RecvQueue, need uint32) Outcome {
	if r.interrupted && r.from == from {
		if r.capacity < need {
			return NoRoom
		}
		r.interrupted, r.got = false, 0
		return Done
	}
	if r.interrupted { // its receive is from another shared receive queue of the XRC domain
		r.fail(abi.StatusWRFlushErr, uint32(reason.PeerLeft))
	}
	if by := from.owner(r.q).Interceptor; by != nil && !from.empty() {
		if v := by.Message(r.q, MessageSend, from); v.Is != Done {
			return v.Is
		}
	}
	var rqe abi.RQE
	list := r.q.t.list[:]
	i, ok := from.look(&rqe, list)
	switch {
	case !ok:
		return NoReceive
	case need > 0 && rqe.NumSGE <= from.maxSGE && room(list[:rqe.NumSGE]) < uint64(need):
		return NoRoom
	}
	r.begin(from, rqe.WRID, i)
	if rqe.NumSGE > from.maxSGE {
		r.wrong(abi.StatusLocQPOpErr, reason.TooManySGEs)
		return BadReceive
	}
	if wrong := r.hold(list[:rqe.NumSGE]); wrong != 0 {
		r.wrong(abi.StatusLocProtErr, wrong)
		return BadReceive
	}
	if r.q.Client.WatchAll {
		r.tellBegun()
	}
	return Done
}

// begin takes the receive at index i, which must be the next of from.
func (r *Receive) begin(from *RecvQueue, id uint64, i uint32) {
	from.taken()
	from.checkLimit(r.q.t)
	r.from, r.active, r.id, r.index, r.got, r.capacity, r.nsge = from, true, id, i, 0, 0, 0
}

// room returns the total length of a scatter/gather list.
func room(list []abi.SGE) (n uint64) {
	for i := range list {
		n += uint64(list[i].Length)
	}
	return n
}

// hold checks a scatter/gather list and keeps its regions' pages mapped. It returns the reason
// why the list is invalid, or 0.
func (r *Receive) hold(list []abi.SGE) reason.Number {
	if len(list) > len(r.sges) {
		r.sges = make([]element, len(list)) // a shared receive queue may allow longer lists
	}
	pd := r.from.domain(r.q)
	for j := range list {
		el := &list[j]
		if el.Length == 0 {
			continue
		}
		if !r.q.hold(&r.sges[r.nsge], el, pd, mem.LocalWrite) {
			r.q.found.Element = elementOf(j, el, pd)
			return r.q.wrongElement(el, pd)
		}
		r.nsge++
		r.capacity += min(el.Length, ^uint32(0)-r.capacity)
	}
	return 0
}

// wrong completes the current receive with an error, because it is invalid.
func (r *Receive) wrong(status uint32, why reason.Number) {
	r.q.found = Found{Is: BadReceive, Local: why, WRID: r.id, Element: r.q.found.Element}
	r.fail(status, uint32(why))
}

// FailNext takes the next receive of from and completes it with an error status, enum
// ibv_wc_status, like an invalid receive.
func (r *Receive) FailNext(from *RecvQueue, status uint32, why reason.Number) Verdict {
	var rqe abi.RQE
	i, ok := from.look(&rqe, nil)
	if !ok {
		return Verdict{Is: NoReceive}
	}
	r.begin(from, rqe.WRID, i)
	r.wrong(status, why)
	return Verdict{Is: BadReceive}
}
