package qp

import (
	"urdma/reason"
	"urdma/verbs/abi"
)

// Flush moves the queue pair to the error state and flushes both queues. Work requests beyond
// flushAtOnce are flushed in later turns, because thousands of queue pairs may end in one turn. A
// carrier that ends its connection calls it. why is the reason, unless the queue pair already has
// one.
func (q *QP) Flush(why reason.Number) {
	if q.state == abi.QPSErr {
		return
	}
	if q.why == 0 {
		q.why = why
	}
	wasReset := q.state == abi.QPSReset
	q.moveTo(abi.QPSErr)
	// the receives of an XRC domain belong to its programs, which are told of one that is lost
	if q.abandoned && q.Domain == nil {
		return
	}
	s := &q.SQ
	s.fail()
	s.reads, s.settling, s.more = 0, nil, false // flushPosted handles the remaining work requests
	if q.Recv.active {
		q.Recv.fail(abi.StatusWRFlushErr, uint32(q.why))
	}
	if !wasReset {
		q.flushPosted(flushAtOnce)
	}
	if q.RQ.shared != nil {
		q.jobs.tell = true
		q.t.tellLast(q)
	}
}

// StopSends moves a queue pair to the send queue error state (SQE) and flushes its sends.
// Messages can still arrive. ibv_modify_qp moves it back to RTS.
func (q *QP) StopSends() {
	if q.state == abi.QPSErr || q.state == abi.QPSSQE {
		return
	}
	q.moveTo(abi.QPSSQE)
	s := &q.SQ
	s.fail()
	s.more, s.draining = false, false
	q.flushPosted(flushAtOnce)
}

// flushAtOnce is the number of work requests of each queue that are flushed when the queue pair
// fails.
const flushAtOnce = 64

// flushPosted flushes up to most work requests of each queue that is in error: both queues in
// state ERR, the send queue in state SQE.
func (q *QP) flushPosted(most int) {
	more := q.flushSends(most)
	if q.state == abi.QPSErr {
		more = q.flushReceives(most) || more
	}
	if more {
		q.t.Ready(q)
	}
}

// flushFetched flushes up to most outstanding sends, and returns how many.
func (q *QP) flushFetched(most int) (n int) {
	s := &q.SQ
	for ; s.head != s.tail && n < most; n++ {
		q.flushOldest()
	}
	return n
}

func (q *QP) flushSends(most int) (more bool) {
	s := &q.SQ
	n := q.flushFetched(most)
	if s.head != s.tail {
		return true
	}
	var slot abi.SQE
	prod, err := s.ring.Prod(s.tail)
	for ; err == nil && s.tail != prod && n < most; n++ {
		s.ring.Read(s.tail, &slot, nil)
		var w abi.CQE
		q.describe(&w, slot.WRID, s.tail, abi.StatusWRFlushErr)
		w.Opcode, w.VendorErr = operationOf(slot.Opcode).Completion, uint32(q.why)
		s.tail++
		s.ring.PublishCons(s.tail)
		q.complete(q.SendCQ, &w, false)
	}
	s.head, s.next = s.tail, s.tail
	return err == nil && s.tail != prod
}

func (q *QP) flushReceives(most int) (more bool) {
	var rqe abi.RQE
	for range most {
		if q.RQ.shared != nil || q.Client.Backlogged() {
			return false // the receives are for other queue pairs, or memory is awaited: see releaseDeferred
		}
		i, ok := q.RQ.take(&rqe, nil)
		if !ok {
			return false
		}
		var w abi.CQE
		q.describe(&w, rqe.WRID, i, abi.StatusWRFlushErr)
		w.Opcode, w.VendorErr = abi.WCRecv, uint32(q.why)
		q.RQ.publish(i)
		q.completeRecv(q.RQ, q.RecvCQ, &w, false)
	}
	return true
}

// FlushForReceive ends a queue pair because of an invalid receive.
func (q *QP) FlushForReceive() {
	why := q.found.Local
	switch {
	case q.found.Given != 0:
		why = q.found.Given
	case q.found.Is != BadReceive:
		why = reason.LocalRevoked
	}
	if q.state != abi.QPSErr {
		q.because(why, nil, abi.StatusSuccess)
	}
	q.Flush(why)
}
