package qp

import (
	"urdma/reason"
	"urdma/verbs/abi"
)

// This file completes the oldest send.

// readDone reports whether the whole answer to a Read has been written to memory.
func (q *QP) readDone(wr *SendWR) bool { return wr.answered && q.jobs.done >= wr.asyncUntil }

// describe sets the fields of w, an empty completion, that all completions of the queue pair share.
// index is the work request's index in its queue. It sets them one by one: a copy of a new value
// would wait until all earlier stores are in the cache.
func (q *QP) describe(w *abi.CQE, id uint64, index, status uint32) {
	w.WRID, w.Index, w.Status, w.QPNum, w.UserHandle = id, index, status, q.QPN, q.UserHandle
}

// completeOldest removes the oldest work request and writes its completion. The ring's index
// moves before the client can see the completion, because a program whose queue holds one request
// posts the next one at once.
func (q *QP) completeOldest(wr *SendWR, status uint32) {
	s := &q.SQ
	if q.t.Retired != nil {
		q.t.Retired(q, s.head, status, reason.Number(wr.vendor))
	}
	if status != abi.StatusSuccess {
		s.fail()
	} else if !wr.isLocal() {
		q.Stats.MessagesSent++
		q.Stats.BytesSent += uint64(wr.Length)
	}
	var w abi.CQE
	signaled := wr.Flags&abi.SendSignaled != 0 || s.failed
	if signaled {
		q.describe(&w, wr.id, s.head, status)
		w.VendorErr, w.ByteLen, w.Opcode = wr.vendor, wr.Length, wr.Op.Completion
	}
	s.release(s.head)
	s.head++
	if int32(s.next-s.head) < 0 {
		s.next = s.head
	}
	if signaled {
		s.publish()
		q.complete(q.SendCQ, &w, false)
	} else {
		q.t.spent += slotCost
	}
}

// flushOldest flushes the oldest send; there must be one.
func (q *QP) flushOldest() {
	wr := q.SQ.At(q.SQ.head)
	wr.vendor = uint32(q.why)
	q.completeOldest(wr, abi.StatusWRFlushErr)
}

// complete writes a completion of the queue pair, unless it is an error after SendLast.
func (q *QP) complete(c *CQ, w *abi.CQE, solicited bool) {
	if !q.leaving || w.Status == abi.StatusSuccess {
		q.t.complete(c, w, solicited)
	}
}
