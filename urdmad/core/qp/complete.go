package qp

import (
	"urdma/reason"
	"urdma/verbs/abi"
)

// This file completes the oldest send.

// readDone reports whether the whole answer to a Read has been written to memory.
func (q *QP) readDone(wr *SendWR) bool { return wr.answered && q.jobs.done >= wr.asyncUntil }

// completion returns a completion with the fields that all completions of the queue pair share.
// index is the work request's index in its queue.
func (q *QP) completion(id uint64, index, status uint32) abi.CQE {
	return abi.CQE{WRID: id, Index: index, Status: status, QPNum: q.QPN, UserHandle: q.UserHandle}
}

// completeOldest removes the oldest work request and writes its completion. The ring's index
// moves before the client can see the completion, because a program whose queue holds one request
// posts the next one at once.
func (q *QP) completeOldest(wr *SendWR, status uint32) {
	s := &q.SQ
	if q.t.Retired != nil {
		q.t.Retired(q, s.head, status, reason.Number(wr.vendor))
	}
	w := q.completion(wr.id, s.head, status)
	w.VendorErr, w.ByteLen = wr.vendor, wr.Length
	w.Opcode = wr.Op.Completion
	if status != abi.StatusSuccess {
		s.fail()
	} else if !wr.isLocal() {
		q.Stats.MessagesSent++
		q.Stats.BytesSent += uint64(wr.Length)
	}
	signaled := wr.Flags&abi.SendSignaled != 0 || s.failed
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
