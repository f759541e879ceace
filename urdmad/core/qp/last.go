package qp

import (
	"urdma/urdmad/core/clock"
	"urdma/verbs/abi"
)

// LastPatience bounds how long what was posted last may take to leave.
const LastPatience = 100 * clock.Millisecond

// SendLast is called, again and again, for a queue pair that is about to be destroyed,
// or whose program has ended. The first call fetches what was posted before that was
// seen. An adapter has long sent it then, so there are programs that destroy a queue
// pair, or just end, without having waited for completions. It reports whether
// something is left that the peer may still get. From the first call on no work of the
// queue pair completes with an error, and there are no events: the peer may leave as
// well. A peer that has been silent for LastPatience is not waited for.
func (q *QP) SendLast() (left bool) {
	if q.Domain != nil {
		return false
	}
	if !q.leaving {
		q.leaving = true
		q.Post()
	}
	if c, ok := q.carrier.(interface{ Stalled() clock.Time }); ok && c.Stalled() >= LastPatience {
		return false
	}
	s := &q.SQ
	return q.carrier != nil && q.state == abi.QPSRTS && (s.more || s.next != s.tail || s.lastMark() > q.acked)
}

// Leaving reports whether SendLast was called.
func (q *QP) Leaving() bool { return q.leaving }

// lastMark is the mark of the newest work request that was sent; 0: none is outstanding.
func (s *SendQueue) lastMark() uint64 {
	for i := s.tail; i != s.head; i-- {
		if wr := s.At(i - 1); !wr.isLocal() {
			return wr.mark
		}
	}
	return 0
}

// complete writes a completion of the queue pair's.
func (q *QP) complete(c *CQ, w *abi.CQE, solicited bool) {
	if !q.leaving || w.Status == abi.StatusSuccess {
		q.t.complete(c, w, solicited)
	}
}
