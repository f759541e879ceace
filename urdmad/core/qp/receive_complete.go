package qp

import (
	"slices"

	"urdma/reason"
	"urdma/urdmad/core/mem"
	"urdma/verbs/abi"
)

// Ending is the information in the last segment of a message.
type Ending struct {
	HasImmediate bool
	Immediate    uint32 // in the byte order in which the program stored it
	Invalidates  bool
	STag         mem.STag // STag to invalidate
	Solicited    bool

	// For a datagram: its sender, and the bytes of its header (GRH), which do not count as received.
	SrcQP, SourceLID, HeaderRoom uint32
}

// EndSend completes the receive of a Send.
func (q *QP) EndSend(e Ending) Verdict {
	w := q.Recv.completion(abi.StatusSuccess)
	w.SrcQP, w.SourceLID = e.SrcQP, e.SourceLID
	if e.Invalidates {
		if v := q.invalidate(e.STag); v != mem.Allowed {
			return q.deny(v, e.STag, 0, 0, 0)
		}
		w.WCFlags, w.ImmOrSTag = abi.WCWithInv, uint32(e.STag)
	}
	if e.HasImmediate {
		w.WCFlags, w.ImmOrSTag = abi.WCWithImm, e.Immediate
	}
	if e.HeaderRoom > 0 {
		w.WCFlags |= abi.WCGRH
	}
	q.Stats.BytesRecv -= uint64(e.HeaderRoom)
	q.Recv.arrived(&w, e.Solicited)
	return Verdict{}
}

// invalidate removes the peer's rights to a memory window (RFC 5040 section 5.3). A target queue
// pair of an XRC domain cannot invalidate anything, because it has no protection domain.
func (q *QP) invalidate(stag mem.STag) mem.Violation {
	if q.Domain != nil {
		return mem.NoRight
	}
	return q.t.Regions.Invalidate(stag, q.user())
}

// EndWriteImmediate ends a Write of n bytes with immediate data, which takes a receive.
func (q *QP) EndWriteImmediate(srqn, imm, n uint32, solicited bool) Verdict {
	if v := q.BeginReceive(srqn, 0); v.Is != Done {
		return v
	}
	q.writeEnds()
	w := q.Recv.completion(abi.StatusSuccess)
	w.Opcode, w.ByteLen, w.WCFlags, w.ImmOrSTag = abi.WCRecvRDMAWithImm, n, abi.WCWithImm, imm
	q.Recv.arrived(&w, solicited)
	return Verdict{}
}

// FailReceive completes the current receive with the status for a verdict of PlaceSend or
// EndSend; vendor becomes the completion's vendor_err.
func (q *QP) FailReceive(v Verdict, vendor uint32) {
	status := uint32(abi.StatusGeneralErr)
	switch v.Is {
	case TooLong:
		status = abi.StatusLocLenErr
	case Revoked:
		status = abi.StatusLocProtErr
	}
	q.Recv.fail(status, vendor)
}

// completion returns a completion with the fields known of the current receive.
func (r *Receive) completion(status uint32) abi.CQE {
	w := r.q.completion(r.id, r.index, status)
	w.Opcode, w.ByteLen = abi.WCRecv, r.got
	return w
}

// arrived counts a message that took a receive and completes the receive.
func (r *Receive) arrived(w *abi.CQE, solicited bool) {
	r.q.Stats.MessagesRecv++
	r.q.Stats.BytesRecv += uint64(r.got)
	r.end(w, solicited)
}

// fail completes the current receive with an error.
func (r *Receive) fail(status, vendor uint32) {
	w := r.completion(status)
	w.VendorErr = vendor
	r.end(&w, false)
}

// end completes the current receive.
func (r *Receive) end(w *abi.CQE, solicited bool) {
	q := r.q
	cq := r.completesOn()
	if q.Domain != nil {
		w.UserHandle = 0 // the polling program has no such queue pair
	}
	r.drop()
	r.from.publish(r.index)
	q.Stats.RecvsPosted++
	q.completeRecv(r.from, cq, w, solicited)
}

// completesOn returns the completion queue of the current receive.
func (r *Receive) completesOn() *CQ {
	if s := r.from.shared; s != nil && s.CQ != nil {
		return s.CQ
	}
	return r.q.RecvCQ
}

func (r *Receive) drop() {
	for i := range r.sges[:r.nsge] {
		r.sges[i].region.Release()
		r.sges[i] = element{}
	}
	r.active, r.interrupted, r.nsge = false, false, 0
}

// deferredRecv is a receive completion that waits for writes issued before it.
type deferredRecv struct {
	until     uint64 // written once jobs.done has reached this number
	from      *RecvQueue
	cq        *CQ
	cqe       abi.CQE
	solicited bool
	waits     *Client // the client whose memory is being written
}

// completeRecv writes a receive completion now, or once the writes issued before it have ended.
func (q *QP) completeRecv(from *RecvQueue, c *CQ, w *abi.CQE, solicited bool) {
	j := &q.jobs
	if j.done == j.issued && len(j.deferred) == 0 {
		q.complete(c, w, solicited)
		return
	}
	j.last.unwritten += perWait
	j.deferred = append(j.deferred, deferredRecv{j.issued, from, c, *w, solicited, j.last})
}

func (q *QP) releaseDeferred() {
	j := &q.jobs
	for len(j.deferred) > 0 && j.deferred[0].until <= j.done {
		d := j.deferred[0]
		j.deferred = j.deferred[1:]
		if d.cqe.Status == abi.StatusSuccess && !j.written(d.until) {
			d.cqe.Status, d.cqe.VendorErr = abi.StatusLocProtErr, uint32(reason.LocalUnreachable)
		}
		d.waits.unwritten -= perWait
		q.complete(d.cq, &d.cqe, d.solicited)
	}
	q.t.tellLast(q)
	q.completeSends()
	if q.state == abi.QPSErr && !q.removed {
		q.t.Ready(q) // to flush receives posted in the meantime
	}
}

// forget drops the waiting completions for which which returns true.
func (j *jobs) forget(which func(deferredRecv) bool) {
	j.deferred = slices.DeleteFunc(j.deferred, func(d deferredRecv) bool {
		drop := which(d)
		if drop {
			d.waits.unwritten -= perWait
		}
		return drop
	})
}
