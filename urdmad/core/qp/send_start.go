package qp

import "urdma/verbs/abi"

// Ready carries out local work requests as far as their turn has come, and then
// reports whether the one at Next may move now; its message begins with that.
func (q *QP) Ready() bool {
	if q.SQ.localNext() && q.carryOutLocal() == fetchBudget {
		q.t.Ready(q)
		return false
	}
	return q.SQ.ready()
}

// ready reports whether the work request at Next may move now, and starts its
// message: numbers it and counts its Read.
func (s *SendQueue) ready() bool {
	if s.next == s.tail {
		return false
	}
	wr := s.At(s.next)
	if wr.State != SendQueued {
		return false
	}
	if !wr.Started && !s.mayStart(wr) {
		return false // nor are its bytes read: a Read that it waits for may bring them
	}
	if !wr.IsRead() && !wr.bytesOut && !wr.Here(wr.sent) {
		return false
	}
	if !wr.Started {
		s.start(wr)
	}
	return true
}

func (s *SendQueue) mayStart(wr *SendWR) bool {
	switch {
	case s.draining:
		return false
	case wr.Flags&abi.SendFence != 0 && s.reads > 0:
		return false // earlier Reads first (ibv_post_send(3); RFC 5040 section 5.5)
	}
	return !wr.IsRead() || s.reads < s.maxReads
}

func (s *SendQueue) start(wr *SendWR) {
	wr.Started = true
	switch {
	case wr.IsRead():
		wr.MSN = s.readMSN
		s.readMSN++
		s.reads++
	case wr.Op.TakesReceive:
		wr.MSN = s.orderedMSN
		s.orderedMSN++
	}
}

// Sent says that n bytes more of the work request at Next left with a mark. After
// its last byte comes its immediate data, if that goes apart from the bytes, and
// then the next work request.
func (s *SendQueue) Sent(n uint32, mark uint64, immediateApart bool) {
	wr := s.At(s.next)
	wr.mark = mark
	wr.sent += n
	if wr.stage != nil {
		wr.stage.Sent(wr.sent, mark)
	}
	switch {
	case wr.sent < wr.Length && !wr.IsRead():
	case wr.Op.Immediate && immediateApart && !wr.bytesOut:
		wr.bytesOut = true
	default:
		s.advance()
	}
}

// advance says that the work request at Next was handed to the carrier whole.
func (s *SendQueue) advance() {
	s.At(s.next).State = SendSent
	s.next++
}
