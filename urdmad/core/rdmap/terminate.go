package rdmap

import (
	"urdma/reason"
	"urdma/urdmad/core/qp"
	"urdma/wire"
)

// Refusal builds the DDP segment of the Terminate for a segment that Deliver refused (queue 2, MSN 1), and
// counts it.
func (s *Stream) Refusal(seg *Segment, v Verdict) []byte {
	s.stats.TerminatesSent[v.Code]++
	b := terminate(seg, v)
	if told := s.QP.Refusal(); told.Kind != 0 && s.QP.Connection().PeerAccepts != 0 { // the peer is a urdmad
		var detail [wire.TermDetailLen]byte
		(&wire.TermDetail{Kind: uint16(told.Kind), Value: told.Value}).Put(detail[:])
		b = append(b, detail[:]...)
	}
	return b
}

// RefusalOf builds the Terminate that refuses one of our segments for a cause.
func RefusalOf(segment []byte, code wire.TermCode) []byte {
	var d wire.DDP
	at, err := d.Parse(segment)
	if err != nil {
		return nil
	}
	return terminate(&Segment{Head: segment, Data: segment}, Verdict{Result: Refused, Code: code, header: at, op: d.Op})
}

// RefuseRevoked builds the Terminate for a Read Request whose source was deregistered before it was
// answered, and counts it.
func (s *Stream) RefuseRevoked(seg *Segment, code wire.TermCode) []byte {
	s.stats.TerminatesSent[code]++
	return RefusalOf(seg.Data, code)
}

func terminate(seg *Segment, v Verdict) []byte {
	t := wire.Terminate{Code: v.Code}
	if v.header > 0 {
		t.HasDDPLen, t.SegmentLen = true, uint16(min(len(seg.Data)+seg.More, 0xffff))
		t.DDPHeader = seg.Head[:v.header]
		if v.op == wire.OpReadRequest && len(seg.Head) >= v.header+wire.ReadRequestLen {
			t.ReadRequest = seg.Head[v.header : v.header+wire.ReadRequestLen]
		}
	}
	d := wire.DDP{Last: true, Op: wire.OpTerminate, QN: wire.QueueTerminate, MSN: 1}
	b := make([]byte, wire.UntaggedLen+wire.MaxTerminateLen)
	n := d.Put(b)
	return b[:n+t.Put(b[n:])]
}

// Terminated handles the peer's Terminate: the refused work request fails with its cause. The caller ends
// the connection, which flushes the other work requests. err means that the Terminate itself was invalid;
// then the cause is unspecified.
func (s *Stream) Terminated(seg *Segment) (code wire.TermCode, err error) {
	var d wire.DDP
	var t wire.Terminate
	at, err := d.Parse(seg.Head)
	if err == nil {
		var n int
		n, err = t.Parse(seg.Head[at:])
		detail := wire.ParseTermDetail(seg.Head[at+n:])
		s.QP.PeerRefused(qp.Refusal{Kind: qp.RefusalKind(detail.Kind), Value: detail.Value})
	}
	if err != nil {
		t = wire.Terminate{Code: wire.TermOperationUnspecified}
	}
	s.stats.TerminatesGot[t.Code]++
	if s.completeUpTo(&t) {
		sq := &s.QP.SQ
		s.QP.FailOldest(StatusOf(sq.At(sq.Head()).Op, t.Code), reason.Number(t.Code))
	}
	return t.Code, err
}

// completeUpTo completes the work requests before the refused one: the peer works in order, so they were
// executed. It reports whether a work request was refused, which is then the oldest; it is not if the peer
// refused a Read Response.
func (s *Stream) completeUpTo(t *wire.Terminate) bool {
	var d wire.DDP
	if t.DDPHeader == nil {
		return true
	}
	if _, err := d.Parse(t.DDPHeader); err != nil {
		return true
	}
	sq := &s.QP.SQ
	for i := sq.Head(); i != sq.Next()+1 && i != sq.Tail(); i++ {
		if refusedBy(sq.At(i), &d, t.ReadRequest) {
			s.QP.CompleteBefore(i)
			return true
		}
	}
	return d.Op != wire.OpReadResponse && d.Op != wire.OpAtomicResponse
}

// refusedBy reports whether wr contains the refused segment, which has header d and, for a Read, this
// request if it is included. siw puts the length of a Read in the place of its MSN.
func refusedBy(wr *qp.SendWR, d *wire.DDP, request []byte) bool {
	if !wr.Started {
		return false
	}
	if d.Op.TakesReceive() {
		return wr.Op.TakesReceive && d.MSN == wire.MSN(wr.MSN)
	}
	switch op := wire.Opcode(wr.Op.RDMAP); {
	case op == wire.OpReadRequest && request != nil:
		var r wire.ReadRequest
		_, err := r.Parse(request)
		return d.Op == op && err == nil && r.SrcSTag == wire.STag(wr.RKey) &&
			r.SrcTO-wr.RemoteAddr() < uint64(max(wr.Length, 1))
	case op == wire.OpReadRequest, op == wire.OpAtomicRequest:
		return d.Op == op && d.MSN == wire.MSN(wr.MSN)
	case op == wire.OpWrite:
		return d.Op == op && d.STag == wire.STag(wr.RKey) && d.TO-wr.RemoteAddr() < uint64(max(wr.Length, 1))
	}
	return false
}

// RefuseStream builds the Terminate for an error in no particular segment, an FPDU with a wrong CRC, and
// counts it.
func (s *Stream) RefuseStream(code wire.TermCode) []byte {
	s.stats.TerminatesSent[code]++
	return terminate(&Segment{}, Verdict{Result: Refused, Code: code})
}
