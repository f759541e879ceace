package qp

import (
	"urdma/urdmad/core/clock"
	"urdma/verbs/abi"
)

// LastSendTimeout is the time for which the last posts of a queue pair that is being destroyed
// may take to leave.
const LastSendTimeout = 100 * clock.Millisecond

// SendLast is called repeatedly for a queue pair that is about to be destroyed, or whose program
// has ended. The first call fetches all remaining posts. An RDMA adapter would already have sent
// them, so there are programs that destroy a queue pair, or just end, without waiting for
// completions. SendLast reports whether some of the work can still reach the peer. From the first
// call on, no work request of the queue pair completes with an error and no events are sent,
// because the peer may disconnect as well. A peer that has been silent for LastSendTimeout is not
// waited for.
func (q *QP) SendLast() (left bool) {
	if q.Domain != nil {
		return false
	}
	if !q.leaving {
		q.leaving = true
		q.Post()
	}
	if c, ok := q.carrier.(interface{ Stalled() clock.Time }); ok && c.Stalled() >= LastSendTimeout {
		return false
	}
	s := &q.SQ
	return q.carrier != nil && q.state == abi.QPSRTS && (s.more || s.next != s.tail || s.lastMark() > q.acked)
}

// Leaving reports whether SendLast was called.
func (q *QP) Leaving() bool { return q.leaving }

// lastMark returns the mark of the newest work request that was sent; 0 if none is outstanding.
func (s *SendQueue) lastMark() uint64 {
	for i := s.tail; i != s.head; i-- {
		if wr := s.At(i - 1); !wr.isLocal() {
			return wr.mark
		}
	}
	return 0
}
