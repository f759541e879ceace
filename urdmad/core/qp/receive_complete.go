package qp

import (
	"urdma/reason"
	"urdma/verbs/abi"
)

// describe sets the fields of w, an empty completion, that are known of the current receive.
func (r *Receive) describe(w *abi.CQE, status uint32) {
	r.q.describe(w, r.id, r.index, status)
	w.Opcode, w.ByteLen = abi.WCRecv, r.got
}

// arrived counts a message that took a receive and completes the receive.
func (r *Receive) arrived(w *abi.CQE, solicited bool) {
	r.q.Stats.MessagesRecv++
	r.q.Stats.BytesRecv += uint64(r.got)
	r.end(w, solicited)
}

// fail completes the current receive with an error.
func (r *Receive) fail(status, vendor uint32) {
	var w abi.CQE
	r.describe(&w, status)
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
