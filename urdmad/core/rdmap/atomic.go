package rdmap

import (
	"urdma/urdmad/core/mem"
	"urdma/urdmad/core/qp"
	"urdma/wire"
)

// This file implements atomic operations (RFC 7306 section 5). A request is executed once, when it arrives
// in order. Its answer keeps the original value until the peer has it, so a lost segment is built again
// without executing the operation again.

// buildAtomicRequest writes the Atomic Request of the work request in a slot.
func (s *Segmenter) buildAtomicRequest(b []byte, slot uint32, wr *qp.SendWR) int {
	d := wire.DDP{Last: true, Op: wire.OpAtomicRequest, QN: wire.QueueReadRequest, MSN: wire.MSN(wr.MSN)}
	at := d.Put(b)
	op := wr.AtomicOp()
	r := wire.AtomicRequest{RequestID: uint32(SinkSTag(s.QP, s.QP.SQ.Index(slot))), STag: wire.STag(wr.RKey),
		TO:     wr.RemoteAddr(),
		Opcode: wire.AtomicFetchAdd, Data: op.Data, Mask: op.Mask, Compare: op.Compare, CompareMask: op.CompareMask}
	if !op.Add {
		r.Opcode = wire.AtomicCmpSwap
	}
	return at + r.Put(b[at:])
}

// operationOf returns the operation that a request asks for.
func operationOf(r *wire.AtomicRequest) mem.AtomicOp {
	op := mem.AtomicOp{Add: r.Opcode == wire.AtomicFetchAdd, Data: r.Data, Mask: r.Mask}
	if r.Opcode == wire.AtomicCmpSwap {
		op.Compare, op.CompareMask = r.Compare, r.CompareMask
	}
	return op
}

// atomicRequested executes the peer's request and queues the answer.
func (s *Stream) atomicRequested(d *wire.DDP, seg *Segment, at int) Verdict {
	if d.MSN != s.reqMSN {
		return refuse(wire.TermUntaggedMSN)
	}
	b, code := bodyOf(seg, at, wire.AtomicRequestLen)
	if code != 0 {
		return refuse(code)
	}
	var req wire.AtomicRequest
	if _, err := req.Parse(b); err != nil {
		return refuse(codeOf(err))
	}
	if s.answers.full() {
		return refuse(wire.TermUntaggedNoBuffer) // more than IRD, as with Reads
	}
	q, op := s.QP, operationOf(&req)
	a := &atomicAnswer{id: req.RequestID, msn: s.atomicMSN}
	original, done, v := q.Atomic(mem.STag(req.STag), req.TO, &op, func(original uint64) {
		a.original, a.done = original, true
		q.Table().Wake(q)
	})
	if v.Is != qp.Done {
		return verdict(v, &reads)
	}
	a.original, a.done = original, done
	s.reqMSN, s.atomicMSN = s.reqMSN.Add(1), s.atomicMSN.Add(1)
	s.answers.owe(answer{atomic: a})
	return Verdict{}
}

// atomicAnswer is the answer to an atomic request.
type atomicAnswer struct {
	id       uint32   // of the request
	msn      wire.MSN // on queue 3
	original uint64
	done     bool // the operation was executed
}

func (a *atomicAnswer) build(b []byte) int {
	d := wire.DDP{Last: true, Op: wire.OpAtomicResponse, QN: wire.QueueAtomicResponse, MSN: a.msn}
	at := d.Put(b)
	r := wire.AtomicResponse{RequestID: a.id, Original: a.original}
	return at + r.Put(b[at:])
}

// placeAtomicResponse handles the answer to one of our atomics.
func (s *Stream) placeAtomicResponse(d *wire.DDP, seg *Segment, at int) Verdict {
	if d.MSN != s.answeredMSN {
		return refuse(wire.TermUntaggedMSN)
	}
	b, code := bodyOf(seg, at, wire.AtomicResponseLen)
	if code != 0 {
		return refuse(code)
	}
	var r wire.AtomicResponse
	if _, err := r.Parse(b); err != nil {
		return refuse(codeOf(err))
	}
	wr := s.QP.AwaitsAnswer(readIndex(s.QP, wire.STag(r.RequestID)), true)
	if wr == nil {
		return refuse(wire.TermOperationStream)
	}
	v := s.QP.PlaceOriginal(wr, r.Original)
	if v.Is == qp.Done {
		s.answeredMSN = s.answeredMSN.Add(1)
	}
	return verdict(v, &originals)
}
