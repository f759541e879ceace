package qp

import (
	"urdma/reason"
	"urdma/verbs/abi"
)

// Acknowledge takes the carrier's report that everything up to mark has arrived: sends whose Mark
// is at most mark need nothing more from the carrier.
func (q *QP) Acknowledge(mark uint64) {
	q.acked = mark
	q.completeSends()
	q.SQ.readAheadsAcked(mark)
}

// completeSends completes the finished send work requests, oldest first, and stops at the first
// unfinished one.
func (q *QP) completeSends() {
	s := &q.SQ
	if q.carrier == nil || q.abandoned || q.state == abi.QPSErr || q.state == abi.QPSSQE {
		return
	}
	before := s.head
	for s.head != s.tail {
		wr := s.At(s.head)
		if wr.State == SendFailed {
			q.FailOldest(wr.status, reason.Number(wr.vendor))
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

// done reports whether the oldest work request is finished: the peer has acknowledged it, and for
// a Read the whole answer has been written to memory.
func (q *QP) done(wr *SendWR) bool {
	if wr.State != SendSent || wr.mark > q.acked {
		return false
	}
	return q.jobs.done >= wr.asyncUntil && (wr.answered || !wr.IsRead())
}

// readAnswered records that all bytes of a Read's answer have been scattered. The Read itself, or
// a fenced send, may have waited for them.
func (q *QP) readAnswered(wr *SendWR) {
	wr.answered, wr.asyncUntil = true, q.jobs.issued
	if q.jobs.done == q.jobs.issued {
		q.SQ.reads--
	} else {
		q.SQ.settling = append(q.SQ.settling, q.jobs.issued)
	}
	q.completeSends()
	q.t.Ready(q)
}

// finishReads frees the places of answered Reads, so that other Reads can begin. The peer counts
// a Read until its answer is acknowledged, and the acknowledgement waits for writes on the
// fallback path (Unwritten).
func (q *QP) finishReads() {
	s := &q.SQ
	for len(s.settling) > 0 && s.settling[0] <= q.jobs.done {
		s.settling = s.settling[1:]
		s.reads--
	}
}

// FailOldest completes the oldest work request, if there is one, with an error. why becomes the
// completion's vendor_err.
func (q *QP) FailOldest(status uint32, why reason.Number) {
	s := &q.SQ
	if q.state == abi.QPSErr || s.head == s.tail {
		return
	}
	wr := s.At(s.head)
	wr.vendor = uint32(why)
	q.because(why, wr, status)
	q.completeOldest(wr, status)
	s.publish()
}

// CompleteBefore completes the work requests before index i, because the peer has carried them
// out. Unfinished Reads among them are flushed. If index i is not outstanding, nothing happens.
func (q *QP) CompleteBefore(i uint32) {
	s := &q.SQ
	for s.Holds(i) && s.head != i && q.state != abi.QPSErr {
		wr := s.At(s.head)
		status := uint32(abi.StatusSuccess)
		if wr.IsRead() && !q.readDone(wr) {
			status = abi.StatusWRFlushErr
		}
		q.completeOldest(wr, status)
	}
	s.publish()
}

// FailRevoked fails the work request in a slot because its memory was deregistered. Unfinished
// work requests before it are flushed.
func (q *QP) FailRevoked(slot uint32) { q.failFirst(q.SQ.Index(slot), reason.LocalRevoked) }

// FailSend fails the work request at index i, whose message the carrier cannot send for the reason why.
// Unfinished work requests before it are flushed.
func (q *QP) FailSend(i uint32, why reason.Number) { q.failFirst(i, why) }

// failFirst fails the work request at index i, and flushes the work requests before it.
func (q *QP) failFirst(i uint32, why reason.Number) {
	s := &q.SQ
	for s.Holds(i) && s.head != i && q.state != abi.QPSErr {
		q.flushOldest()
	}
	q.FailOldest(statusOf(why), why)
}
