package rdmap

import (
	"encoding/binary"

	"urdma/urdmad/mem"
	"urdma/urdmad/qp"
	"urdma/verbs/abi"
	"urdma/wire"
)

// This file is atomic operations (RFC 7306 section 5). A request is carried out
// when it comes in order, once; its answer keeps the original value until the peer
// has it, so a segment that was lost is built again without another operation.

// buildAtomicRequest writes the request of the work request in a slot.
func (s *Segmenter) buildAtomicRequest(b []byte, slot uint32, wr *qp.SendWR) int {
	d := wire.DDP{Last: true, Op: wire.OpAtomicRequest, QN: wire.QueueReadRequest, MSN: wire.MSN(wr.MSN)}
	at := d.Put(b)
	r := wire.AtomicRequest{RequestID: uint32(sinkSTag(s.QP, s.QP.SQ.Index(slot))), STag: wire.STag(wr.RKey), TO: wr.RemoteAddr,
		Opcode: wire.AtomicFetchAdd, Data: wr.CompareAdd}
	if wr.Op.Completion == abi.WCCompSwap {
		const all = ^uint64(0)
		r.Opcode, r.Data, r.Mask, r.Compare, r.CompareMask = wire.AtomicCmpSwap, wr.Swap, all, wr.CompareAdd, all
	}
	return at + r.Put(b[at:])
}

// operationOf is what a request asks for.
func operationOf(r *wire.AtomicRequest) mem.AtomicOp {
	op := mem.AtomicOp{Add: r.Opcode == wire.AtomicFetchAdd, Data: r.Data, Mask: r.Mask}
	if r.Opcode == wire.AtomicCmpSwap {
		op.Compare, op.CompareMask = r.Compare, r.CompareMask
	}
	return op
}

// AtomicOperation is what an atomic work request asks for.
func AtomicOperation(wr *qp.SendWR) mem.AtomicOp {
	if wr.Op.Completion == abi.WCCompSwap {
		return mem.AtomicOp{Data: wr.Swap, Mask: ^uint64(0), Compare: wr.CompareAdd, CompareMask: ^uint64(0)}
	}
	return mem.AtomicOp{Add: true, Data: wr.CompareAdd}
}

// CheckAtomic says why a peer of q may not carry an atomic operation out at to of
// r; 0 if it may.
func CheckAtomic(q *qp.QP, r *mem.Region, to uint64) wire.TermCode {
	v := q.CheckRemote(r, to, mem.WordLen, mem.RemoteAtomic)
	if v == mem.Allowed {
		v = r.CheckAtomic(to)
	}
	if v == mem.Allowed {
		return 0
	}
	return ReadCode(v)
}

// atomicRequested carries the peer's request out and puts the answer in line.
func (s *Stream) atomicRequested(d *wire.DDP, seg *Segment, at int) wire.TermCode {
	if d.MSN != s.reqMSN {
		return wire.TermUntaggedMSN
	}
	b, code := bodyOf(seg, at, wire.AtomicRequestLen)
	if code != 0 {
		return code
	}
	var req wire.AtomicRequest
	if _, err := req.Parse(b); err != nil {
		return codeOf(err)
	}
	if s.answers.full() {
		return wire.TermUntaggedNoBuffer // more than IRD, as with Reads
	}
	q := s.QP
	r := q.Table().Regions.Lookup(mem.STag(req.STag))
	if code := CheckAtomic(q, r, req.TO); code != 0 {
		return code
	}
	s.reqMSN = s.reqMSN.Add(1)
	op := operationOf(&req)
	a := &atomicAnswer{id: req.RequestID, msn: s.atomicMSN}
	s.atomicMSN = s.atomicMSN.Add(1)
	s.answers.owe(answer{atomic: a})
	a.original, a.done = q.Table().Atomic(q, r, req.TO, &op, func(original uint64) {
		a.original, a.done = original, true
		q.Table().Wake(q)
	})
	return 0
}

// atomicAnswer is what is owed for an atomic request.
type atomicAnswer struct {
	id       uint32   // the request's
	msn      wire.MSN // on queue 3
	original uint64
	done     bool // the operation was carried out
}

func (a *atomicAnswer) build(b []byte) int {
	d := wire.DDP{Last: true, Op: wire.OpAtomicResponse, QN: wire.QueueAtomicResponse, MSN: a.msn}
	at := d.Put(b)
	r := wire.AtomicResponse{RequestID: a.id, Original: a.original}
	return at + r.Put(b[at:])
}

// BuildAtomicResponse writes the segment with the answer to the peer's atomic in a
// slot of its send queue, the n-th of the stream from 1.
func BuildAtomicResponse(b []byte, peer *qp.QP, slot, n uint32, original uint64) int {
	a := atomicAnswer{id: uint32(sinkSTag(peer, peer.SQ.Index(slot))), msn: wire.MSN(n), original: original}
	return a.build(b)
}

// placeAtomicResponse is the answer to one of our atomics.
func (s *Stream) placeAtomicResponse(d *wire.DDP, seg *Segment, at int) wire.TermCode {
	if d.MSN != s.answeredMSN {
		return wire.TermUntaggedMSN
	}
	b, code := bodyOf(seg, at, wire.AtomicResponseLen)
	if code != 0 {
		return code
	}
	var r wire.AtomicResponse
	if _, err := r.Parse(b); err != nil {
		return codeOf(err)
	}
	q := s.QP
	i := readIndex(q, wire.STag(r.RequestID))
	if !q.SQ.Holds(i) {
		return wire.TermOperationStream
	}
	wr := q.SQ.At(i)
	if !wr.Op.Atomic || wr.State != qp.SendSent || wr.Answered {
		return wire.TermOperationStream
	}
	s.answeredMSN = s.answeredMSN.Add(1)
	if !TakeOriginal(q, i, r.Original) {
		return wire.TermDDPCatastrophic
	}
	q.ReadAnswered(wr)
	return 0
}

// TakeOriginal writes what an atomic found to the list of the work request at
// index i. False: its memory was deregistered.
func TakeOriginal(q *qp.QP, i uint32, original uint64) bool {
	var b [mem.WordLen]byte
	binary.NativeEndian.PutUint64(b[:], original)
	q.SQ.At(i).Got = mem.WordLen
	q.Stats.BytesRecv += mem.WordLen
	return q.ScatterResponse(i, 0, b[:])
}
