package rdmap

import (
	"errors"

	"urdma/urdmad/mem"
	"urdma/urdmad/qp"
	"urdma/verbs/abi"
	"urdma/wire"
)

// Segment is a DDP segment: its head in private memory, and all of it, which the
// sender may still be able to change.
type Segment struct {
	Head []byte
	Data []byte
}

// Result says what became of a segment.
type Result uint8

const (
	Placed    Result = iota
	NoReceive        // a Send found no receive posted; nothing was done, it may be delivered again
	Busy             // too much waits to be written to the client's memory; nothing was done, as above
	Refused          // the stream ends with the Terminate that Refusal builds
)

// Verdict is what Deliver found.
type Verdict struct {
	Result Result
	Code   wire.TermCode // of what was refused, or of a Send that found no receive

	header int // bytes of the segment's DDP header
	op     wire.Opcode
}

// Deliver takes the next segment in order: checks it, places it, completes what
// it completes. A segment that is wrong is refused before a byte of it is placed
// (RFC 5040 section 4.8). It may end the connection, if what it completes does.
func (s *Stream) Deliver(seg *Segment) (v Verdict) {
	var d wire.DDP
	s.QP.Table().Heard(s.QP)
	at, err := d.Parse(seg.Head)
	if err != nil {
		v.Code = codeOf(err)
	} else if s.fills(&d, len(seg.Data)-at) && s.QP.Client.Backlogged() {
		return Verdict{Result: Busy}
	} else {
		v.Code = s.place(&d, seg, at)
	}
	v.header, v.op = at, d.Op
	switch {
	case v.Code == wire.TermUntaggedNoBuffer && d.Op.TakesReceive():
		v.Result = NoReceive
	case v.Code != 0:
		v.Result = Refused
	default:
		s.stats.SegmentsPlaced++
	}
	return v
}

// fills reports whether a segment brings what may have to wait for the client's
// memory: bytes, or a completion behind some.
func (s *Stream) fills(d *wire.DDP, n int) bool {
	return d.Op.TakesReceive() || n > 0 && d.Op != wire.OpReadRequest
}

func codeOf(err error) wire.TermCode {
	var p *wire.ProtocolError
	if errors.As(err, &p) {
		return p.Code
	}
	return wire.TermOperationUnspecified
}

// place carries out one segment; it returns 0 or the cause of a Terminate.
func (s *Stream) place(d *wire.DDP, seg *Segment, at int) wire.TermCode {
	switch d.Op {
	case wire.OpWrite:
		s.written.add(len(seg.Data)-at, d.Last)
		return s.placeWrite(d, seg.Data[at:])
	case wire.OpImmediate, wire.OpImmediateSE:
		return s.placeImmediate(d, seg, at)
	case wire.OpSend, wire.OpSendInv, wire.OpSendSE, wire.OpSendSEInv:
		return s.placeSend(d, seg.Data[at:])
	case wire.OpReadRequest:
		return s.readRequested(d, seg, at)
	case wire.OpReadResponse:
		return s.placeResponse(d, seg.Data[at:])
	case wire.OpAtomicRequest:
		return s.atomicRequested(d, seg, at)
	case wire.OpAtomicResponse:
		return s.placeAtomicResponse(d, seg, at)
	}
	return wire.TermOperationOpcode
}

// PlaceEarly places an RDMA Write segment that came out of order, as RFC 5041
// section 5.3 allows. It is placed again in its turn, so that overlapping Writes
// end as they were posted; an error waits for its turn too.
func (s *Stream) PlaceEarly(seg *Segment) {
	var d wire.DDP
	if at, err := d.Parse(seg.Head); err == nil && d.Op == wire.OpWrite {
		_ = s.placeWrite(&d, seg.Data[at:])
	}
}

// placeWrite is an RDMA Write segment. A zero-length Write touches nothing and
// its STag is not looked at (RFC 5040 section 5.4).
func (s *Stream) placeWrite(d *wire.DDP, data []byte) wire.TermCode {
	if len(data) == 0 {
		return 0
	}
	q := s.QP
	r := s.region
	if r == nil || r.STag != mem.STag(d.STag) || r.Dead() {
		r = q.Table().Regions.Lookup(mem.STag(d.STag))
		s.region = r
	}
	if v := q.CheckRemote(r, d.TO, uint64(len(data)), mem.RemoteWrite); v != mem.Allowed {
		return WriteCode(v)
	}
	q.Store(r, d.TO, data)
	q.Stats.BytesRecv += uint64(len(data))
	if d.Last {
		q.WriteArrived()
	}
	return 0
}

// placeSend is a segment of a Send message: queue 0, in order.
func (s *Stream) placeSend(d *wire.DDP, data []byte) wire.TermCode {
	q := s.QP
	if d.MSN != s.recvMSN {
		return wire.TermUntaggedMSN
	}
	if q.Type == abi.QPTypeXRCRecv && d.Op.Invalidates() {
		return wire.TermOperationOpcode
	}
	if active, _ := q.Recv.Active(); !active {
		if d.MO != 0 {
			return wire.TermUntaggedMO
		}
		if code := takenCodes[q.Recv.Begin(uint32(d.STag))]; code != 0 {
			return code
		}
	}
	if _, got := q.Recv.Active(); d.MO != got {
		return wire.TermUntaggedMO
	}
	if uint64(len(data)) > uint64(q.Recv.Room()) {
		q.Recv.End(abi.CQE{Status: abi.StatusLocLenErr, VendorErr: uint32(wire.TermUntaggedTooLong)}, false)
		return wire.TermUntaggedTooLong
	}
	if !q.Recv.Scatter(data) {
		q.Recv.End(abi.CQE{Status: abi.StatusLocProtErr}, false)
		return wire.TermDDPCatastrophic
	}
	if !d.Last {
		return 0
	}
	s.recvMSN = s.recvMSN.Add(1)
	cqe, code := Invalidate(q, d.Op.Invalidates(), d.STag)
	if code != 0 {
		return code
	}
	q.Recv.Arrived(cqe, d.Op.Solicited())
	return 0
}

var takenCodes = [...]wire.TermCode{qp.ReceiveTaken: 0, qp.NoReceive: wire.TermUntaggedNoBuffer, qp.BadReceive: wire.TermDDPCatastrophic,
	qp.NoQueue: wire.TermUntaggedQN}

// TakenCode is the cause that refuses a message for what Receive.Begin found.
func TakenCode(t qp.Taken) wire.TermCode { return takenCodes[t] }

// Invalidate takes peers' rights to the region away that a Send with Invalidate
// names, and returns the beginning of the Send's completion; or it fails the
// receive and returns the cause.
func Invalidate(q *qp.QP, invalidates bool, stag wire.STag) (cqe abi.CQE, code wire.TermCode) {
	if !invalidates {
		return cqe, 0
	}
	if v := q.Invalidate(mem.STag(stag)); v != mem.Allowed {
		code = invalidateCodes[v]
		q.Recv.End(abi.CQE{Status: abi.StatusGeneralErr, VendorErr: uint32(code)}, false)
		return cqe, code
	}
	cqe.WCFlags, cqe.ImmOrSTag = abi.WCWithInv, uint32(stag)
	return cqe, 0
}

// readRequested takes a peer's Read (RFC 5040 section 5.2).
func (s *Stream) readRequested(d *wire.DDP, seg *Segment, at int) wire.TermCode {
	if d.MSN != s.reqMSN {
		return wire.TermUntaggedMSN
	}
	if len(seg.Head)-at < min(len(seg.Data)-at, wire.ReadRequestLen) {
		return wire.TermOperationStream
	}
	if len(seg.Data)-at > wire.ReadRequestLen {
		return wire.TermUntaggedTooLong
	}
	var req wire.ReadRequest
	if _, err := req.Parse(seg.Head[at:]); err != nil {
		return codeOf(err)
	}
	if s.answers.full() {
		return wire.TermUntaggedNoBuffer // more Reads than IRD (RFC 5040 section 5.2)
	}
	return s.owe(&req)
}

// owe checks the source and puts the answer in line.
func (s *Stream) owe(req *wire.ReadRequest) wire.TermCode {
	a := answer{req: *req, msn: s.reqMSN, src: []byte{}}
	q := s.QP
	if req.Length > 0 {
		r := q.Table().Regions.Lookup(mem.STag(req.SrcSTag))
		if v := q.CheckRemote(r, req.SrcTO, uint64(req.Length), mem.RemoteRead); v != mem.Allowed {
			return ReadCode(v)
		}
		r.Hold()
		a.region, a.src = r, r.Bytes(req.SrcTO, uint64(req.Length))
		if a.src == nil {
			a.stage = q.StageRemote(r, req.SrcTO, req.Length)
		}
	}
	s.reqMSN = s.reqMSN.Add(1)
	s.answers.owe(a)
	return 0
}

// placeResponse is a segment of the answer to one of our Reads.
func (s *Stream) placeResponse(d *wire.DDP, data []byte) wire.TermCode {
	q := s.QP
	i := readIndex(q, d.STag)
	if !q.SQ.Holds(i) {
		return wire.TermTaggedSTag
	}
	wr := q.SQ.At(i)
	if !wr.IsRead() || wr.Op.Atomic || wr.State != qp.SendSent || wr.Answered {
		return wire.TermTaggedSTag
	}
	if d.TO != uint64(wr.Got) || uint64(len(data)) > uint64(wr.Length-wr.Got) {
		return wire.TermTaggedBounds
	}
	if d.Last != (wr.Got+uint32(len(data)) == wr.Length) {
		return wire.TermTaggedBounds
	}
	if !q.ScatterResponse(i, wr.Got, data) {
		return wire.TermTaggedSTag // deregistered: the peer has nowhere to put it any more
	}
	wr.Got += uint32(len(data))
	q.Stats.BytesRecv += uint64(len(data))
	if d.Last {
		q.ReadAnswered(wr)
	}
	return 0
}
