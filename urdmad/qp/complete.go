package qp

import "urdma/verbs/abi"

// Acknowledge says that everything up to mark was carried: sends whose Mark is
// at most that are done as far as the carrier goes.
func (q *QP) Acknowledge(mark uint64) {
	q.acked = mark
	q.SQ.stagesAcked(mark)
	q.completeSends()
}

// completeSends completes send work requests from the oldest on, as far as they
// are done.
func (q *QP) completeSends() {
	s := &q.SQ
	if q.carrier == nil || q.abandoned {
		return
	}
	before := s.head
	for s.head != s.tail {
		wr := s.At(s.head)
		if wr.State == SendFailed {
			q.FailOldest(wr.status, wr.vendor)
			q.carrier.Failed()
			return
		}
		if !q.done(wr) {
			break
		}
		q.completeOldest(wr, abi.StatusSuccess)
	}
	if s.head != before {
		s.publish()
		q.t.tellDrained(q)
	}
}

// done reports whether the oldest work request is done: carried, and a Read
// answered with all of it written.
func (q *QP) done(wr *SendWR) bool {
	if wr.State != SendSent || wr.Mark > q.acked {
		return false
	}
	return q.jobs.done >= wr.asyncUntil && (wr.Answered || !wr.IsRead())
}

func (q *QP) readDone(wr *SendWR) bool { return wr.Answered && q.jobs.done >= wr.asyncUntil }

// ReadAnswered notes that all of a Read's response was scattered; a Read or a
// fence may have waited for it.
func (q *QP) ReadAnswered(wr *SendWR) {
	wr.Answered, wr.asyncUntil = true, q.jobs.issued
	q.SQ.reads--
	q.completeSends()
	q.t.Ready(q)
}

// completion begins what every completion of the queue pair's work requests
// says; index is that of the request in its queue.
func (q *QP) completion(id uint64, index, status uint32) abi.CQE {
	return abi.CQE{WRID: id, Index: index, Status: status, QPNum: q.QPN, UserHandle: q.UserHandle}
}

// completeOldest forgets the oldest work request and writes its completion. The
// index moves before the client can see the completion: a program whose queue
// holds one request posts the next at once.
func (q *QP) completeOldest(wr *SendWR, status uint32) {
	s := &q.SQ
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
		q.t.complete(q.SendCQ, &w, false)
	}
}

// FailOldest completes the oldest work request, if there is one, with an error.
func (q *QP) FailOldest(status, vendor uint32) {
	s := &q.SQ
	if q.state == abi.QPSErr || s.head == s.tail {
		return
	}
	wr := s.At(s.head)
	wr.vendor = vendor
	q.completeOldest(wr, status)
	s.publish()
}

// CompleteBefore completes the work requests before index i, which the peer has
// carried out. Reads among them that are not done are flushed.
func (q *QP) CompleteBefore(i uint32) {
	s := &q.SQ
	for s.head != i && q.state != abi.QPSErr {
		wr := s.At(s.head)
		status := uint32(abi.StatusSuccess)
		if wr.IsRead() && !q.readDone(wr) {
			status = abi.StatusWRFlushErr
		}
		q.completeOldest(wr, status)
	}
	s.publish()
}

// FailRevoked fails the work request in a slot because its memory was
// deregistered; those before it that are not done are flushed.
func (q *QP) FailRevoked(slot uint32) {
	s := &q.SQ
	i := s.Index(slot)
	for s.head != i && q.state != abi.QPSErr {
		q.completeOldest(s.At(s.head), abi.StatusWRFlushErr)
	}
	q.FailOldest(abi.StatusLocProtErr, 0)
}

// Flush moves the queue pair to the error state and flushes both queues. A
// carrier that ends its connection calls it.
func (q *QP) Flush() {
	if q.state == abi.QPSErr {
		return
	}
	wasReset := q.state == abi.QPSReset
	q.state = abi.QPSErr
	if q.abandoned && q.Domain == nil { // the receives of an XRC domain are its programs', who hear of one that is lost
		return
	}
	s := &q.SQ
	s.fail()
	s.reads, s.more = 0, false // flushPosted sees to what is left
	for s.head != s.tail {
		q.completeOldest(s.At(s.head), abi.StatusWRFlushErr)
	}
	if q.Recv.active {
		q.Recv.End(abi.CQE{Status: abi.StatusWRFlushErr}, false)
	}
	if !wasReset {
		q.flushPosted()
	}
	if q.RQ.shared != nil {
		q.jobs.last = true
		q.t.tellLast(q)
	}
}

// StopSends moves a queue pair to the send queue error state and flushes its sends.
// Messages go on to arrive. ibv_modify_qp moves it back to RTS.
func (q *QP) StopSends() {
	if q.state == abi.QPSErr || q.state == abi.QPSSQE {
		return
	}
	q.state = abi.QPSSQE
	s := &q.SQ
	s.fail()
	s.more, s.draining = false, false
	for s.head != s.tail && q.state == abi.QPSSQE {
		q.completeOldest(s.At(s.head), abi.StatusWRFlushErr)
	}
	q.flushPosted()
}

// tellLast says that no receive of the shared receive queue completes here any
// more (IBV_EVENT_QP_LAST_WQE_REACHED), once the last has.
func (t *Table) tellLast(q *QP) {
	if q.jobs.last && len(q.jobs.deferred) == 0 {
		q.jobs.last = false
		t.sendAsync(q, abi.EventQPLastWQEReached)
	}
}

// fetchBudget bounds the slots of one queue that are taken from a client's ring
// in a turn: a client that posts thousands at once must not hold up the others.
const fetchBudget = 256

// flushPosted completes what a client has posted to a queue pair in error, or whose
// send queue is, a part of it in each turn.
func (q *QP) flushPosted() {
	more := q.flushSends()
	if q.state == abi.QPSErr {
		more = q.flushReceives() || more
	}
	if more {
		q.t.Ready(q)
	}
}

func (q *QP) flushSends() (more bool) {
	s := &q.SQ
	var slot abi.SQE
	prod, err := s.ring.Prod(s.tail)
	for n := 0; err == nil && s.tail != prod && n < fetchBudget; n++ {
		s.ring.Read(s.tail, &slot, nil)
		w := q.completion(slot.WRID, s.tail, abi.StatusWRFlushErr)
		w.Opcode = operationOf(slot.Opcode).Completion
		s.tail++
		s.ring.PublishCons(s.tail)
		q.t.complete(q.SendCQ, &w, false)
	}
	s.head, s.next = s.tail, s.tail
	return err == nil && s.tail != prod
}

func (q *QP) flushReceives() (more bool) {
	var rqe abi.RQE
	for range fetchBudget {
		if q.RQ.shared != nil || q.Client.Backlogged() {
			return false // they wait for other queue pairs; or for memory, see releaseDeferred
		}
		i, ok := q.RQ.take(&rqe, nil)
		if !ok {
			return false
		}
		w := q.completion(rqe.WRID, i, abi.StatusWRFlushErr)
		w.Opcode = abi.WCRecv
		q.RQ.publish(i)
		q.completeRecv(q.RecvCQ, &w, false)
	}
	return true
}
