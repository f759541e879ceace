package qp

// Ready carries out the local work requests at Next, and then reports whether the work request at
// Next may be sent now. If so, its message begins.
func (q *QP) Ready() bool {
	if q.SQ.localNext() && q.carryOutLocal() == fetchBudget {
		q.t.Ready(q)
		return false
	}
	return q.SQ.ready()
}

// ready reports whether the work request at Next may be sent now. If so, it starts the message:
// it numbers the message and counts a Read.
func (s *SendQueue) ready() bool {
	if s.next == s.tail {
		return false
	}
	wr := s.At(s.next)
	if wr.State != SendQueued {
		return false
	}
	if !wr.Started && !s.mayStart(wr) {
		return false // do not read its bytes yet: the Read that it waits for may change them
	}
	if !wr.IsRead() && !wr.bytesOut && !wr.Available(wr.sent) {
		return false
	}
	if !wr.Started {
		s.start(wr)
	}
	return true
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

// Sent records that n more bytes of the work request at Next were sent, with a mark. After the
// last byte comes the immediate data, if the protocol sends it separately, and then the next work
// request.
func (s *SendQueue) Sent(n uint32, mark uint64, immediateApart bool) {
	wr := s.At(s.next)
	wr.mark = mark
	wr.sent += n
	if wr.ahead != nil {
		wr.ahead.Sent(wr.sent, mark)
	}
	switch {
	case wr.sent < wr.Length && !wr.IsRead():
	case wr.Op.Immediate && immediateApart && !wr.bytesOut:
		wr.bytesOut = true
	default:
		s.advance()
	}
}
