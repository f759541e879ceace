package rdmap

import (
	"errors"

	"urdma/urdmad/core/mem"
	"urdma/urdmad/core/qp"
	"urdma/wire"
)

// Segment is a DDP segment: its head in private memory, and the whole segment in memory that its sender may
// still be able to change. Carriers of byte streams may deliver it in pieces, as several Segments, each
// with the header of its piece.
type Segment struct {
	Head   []byte
	Data   []byte
	Placed bool // PlaceEarly has placed it
	More   int  // bytes of the segment that follow in further pieces
}

// rest returns how many bytes of payload the segment has from byte at on, including further pieces.
func (s *Segment) rest(at int) uint64 { return uint64(len(s.Data) - at + s.More) }

// Result is what happened to a segment.
type Result uint8

const (
	Placed    Result = iota
	NoReceive        // a Send found no receive posted; nothing was done, and it may be delivered again
	Busy             // too much data wait for the client's memory; otherwise the same as NoReceive
	Refused          // the stream ends with the Terminate that Refusal builds
)

// Verdict is the result of Deliver.
type Verdict struct {
	Result Result
	Code   wire.TermCode // cause of a refusal, or of a Send that found no receive

	header int // bytes of the segment's DDP header
	op     wire.Opcode
}

func refuse(code wire.TermCode) Verdict { return Verdict{Result: Refused, Code: code} }

// verdict translates a verdict of the message core; r has the causes of refusal.
func verdict(v qp.Verdict, r *refusals) Verdict {
	switch v.Is {
	case qp.Done:
		return Verdict{}
	case qp.Busy:
		return Verdict{Result: Busy}
	case qp.NoReceive:
		return Verdict{Result: NoReceive, Code: r.code(v)}
	}
	return refuse(r.code(v))
}

// Deliver checks the next segment in order, places it, and completes receives and work requests that it
// ends. An invalid segment is refused before any byte of it is placed (RFC 5040 section 4.8). A completion
// may end the connection.
func (s *Stream) Deliver(seg *Segment) (v Verdict) {
	var d wire.DDP
	at, err := d.Parse(seg.Head)
	if err != nil {
		v = refuse(codeOf(err))
	} else {
		v = s.place(&d, seg, at)
	}
	v.header, v.op = at, d.Op
	if v.Result == Placed {
		s.stats.SegmentsPlaced++
	}
	return v
}

func codeOf(err error) wire.TermCode {
	var p *wire.ProtocolError
	if errors.As(err, &p) {
		return p.Code
	}
	return wire.TermOperationUnspecified
}

func (s *Stream) place(d *wire.DDP, seg *Segment, at int) Verdict {
	switch d.Op {
	case wire.OpWrite:
		return s.placeWrite(d, seg, at)
	case wire.OpImmediate, wire.OpImmediateSE:
		return s.placeImmediate(d, seg, at)
	case wire.OpSend, wire.OpSendInv, wire.OpSendSE, wire.OpSendSEInv:
		return s.placeSend(d, seg, at)
	case wire.OpReadRequest:
		return s.readRequested(d, seg, at)
	case wire.OpReadResponse:
		return s.placeResponse(d, seg, at)
	case wire.OpAtomicRequest:
		return s.atomicRequested(d, seg, at)
	case wire.OpAtomicResponse:
		return s.placeAtomicResponse(d, seg, at)
	}
	return refuse(wire.TermOperationOpcode)
}

// PlaceEarly places an RDMA Write segment that arrived out of order, as RFC 5041 section 5.3 allows, and
// reports whether it did. The segment is not placed again in order: the program may have seen it, and have
// written newer data there. An error is reported when the segment is delivered in order.
func (s *Stream) PlaceEarly(seg *Segment) bool {
	var d wire.DDP
	at, err := d.Parse(seg.Head)
	if err != nil || d.Op != wire.OpWrite {
		return false
	}
	data := seg.Data[at:]
	return s.QP.PlaceWrite(mem.STag(d.STag), d.TO, data, uint64(len(data))).Is == qp.Done
}

// placeWrite places an RDMA Write segment.
func (s *Stream) placeWrite(d *wire.DDP, seg *Segment, at int) Verdict {
	data, last := seg.Data[at:], d.Last && seg.More == 0
	if !seg.Placed {
		if v := s.QP.PlaceWrite(mem.STag(d.STag), d.TO, data, seg.rest(at)); v.Is != qp.Done {
			return verdict(v, &writes)
		}
	}
	s.written.add(len(data), last)
	if last {
		s.QP.EndWrite()
	}
	return Verdict{}
}

// placeSend places a segment of a Send message: queue 0, in order.
func (s *Stream) placeSend(d *wire.DDP, seg *Segment, at int) Verdict {
	q := s.QP
	if d.MSN != s.recvMSN {
		return refuse(wire.TermUntaggedMSN)
	}
	active, got := q.Recv.Active()
	if d.MO != got {
		return refuse(wire.TermUntaggedMO)
	}
	if !active {
		if v := q.BeginReceive(uint32(d.STag), 0); v.Is != qp.Done {
			return verdict(v, &sends)
		}
	}
	v := q.PlaceSend(seg.Data[at:], seg.rest(at))
	if v.Is == qp.Done && d.Last && seg.More == 0 {
		s.recvMSN = s.recvMSN.Add(1)
		v = q.EndSend(qp.Ending{Invalidates: d.Op.Invalidates(), STag: mem.STag(d.STag), Solicited: d.Op.Solicited()})
	}
	return s.sent(v)
}

// sent returns the verdict for a message that has taken a receive.
func (s *Stream) sent(v qp.Verdict) Verdict {
	if v.Is != qp.Done && v.Is != qp.Busy {
		s.QP.FailReceive(v, uint32(SendCode(v)))
	}
	return verdict(v, &sends)
}

// readRequested handles a peer's Read Request (RFC 5040 section 5.2).
func (s *Stream) readRequested(d *wire.DDP, seg *Segment, at int) Verdict {
	if d.MSN != s.reqMSN {
		return refuse(wire.TermUntaggedMSN)
	}
	if len(seg.Head)-at < min(len(seg.Data)-at, wire.ReadRequestLen) {
		return refuse(wire.TermOperationStream)
	}
	if len(seg.Data)-at > wire.ReadRequestLen {
		return refuse(wire.TermUntaggedTooLong)
	}
	var req wire.ReadRequest
	if _, err := req.Parse(seg.Head[at:]); err != nil {
		return refuse(codeOf(err))
	}
	if s.answers.full() {
		return refuse(wire.TermUntaggedNoBuffer) // more Reads than IRD (RFC 5040 section 5.2)
	}
	source, v := s.QP.BeginRead(mem.STag(req.SrcSTag), req.SrcTO, req.Length, s.QP)
	if v.Is != qp.Done {
		return verdict(v, &reads)
	}
	s.answers.owe(answer{req: req, msn: s.reqMSN, source: source})
	s.reqMSN = s.reqMSN.Add(1)
	return Verdict{}
}

// placeResponse places a segment of the answer to one of our Reads.
func (s *Stream) placeResponse(d *wire.DDP, seg *Segment, at int) Verdict {
	wr := s.QP.AwaitsAnswer(readIndex(s.QP, d.STag), false)
	switch {
	case wr == nil:
		return refuse(wire.TermTaggedSTag)
	case d.TO != uint64(wr.Got()) || seg.rest(at) > uint64(wr.Length-wr.Got()),
		d.Last != (seg.rest(at) == uint64(wr.Length-wr.Got())):
		return refuse(wire.TermTaggedBounds)
	}
	return verdict(s.QP.PlaceResponse(wr, seg.Data[at:]), &responses)
}
