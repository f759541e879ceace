package qp

import (
	"encoding/binary"

	"urdma/urdmad/core/mem"
	"urdma/verbs/abi"
)

// This file has the steps that a carrier calls for an arriving message, in the order of the
// message's bytes:
//
//	Send                  BeginReceive, PlaceSend for each piece, EndSend
//	Write                 PlaceWrite for each piece, EndWrite or EndWriteImmediate
//	Read, as responder    BeginRead, and a Source to read from
//	Read, as requester    AwaitsAnswer, PlaceResponse for each piece
//	atomic, as responder  Atomic
//	atomic, as requester  AwaitsAnswer, PlaceOriginal
//
// Every step makes all its checks before it changes anything, and returns a Verdict. The carrier
// translates the Verdict into its protocol's answer. receive_begin.go has the first step of a message
// that takes a receive; source.go has BeginRead.

// PlaceSend writes the next bytes of a message into its receive. The receive must have room for
// rest bytes: the remaining length of the message, as far as the carrier knows it.
func (q *QP) PlaceSend(data []byte, rest uint64) Verdict {
	switch r := &q.Recv; {
	case q.backlogged(r.from.owner(q)):
		return Verdict{Is: Busy}
	case rest > uint64(r.capacity-r.got):
		q.found = Found{Is: TooLong, WRID: r.id, Length: uint64(r.got) + rest, Room: r.capacity}
		return Verdict{Is: TooLong}
	case !q.scatter(request{from: r.from, index: r.index}, r.sges[:r.nsge], r.got, data):
		q.found = Found{Is: Revoked, WRID: r.id}
		return Verdict{Is: Revoked}
	default:
		r.got += uint32(len(data))
		q.placed(abi.WCRecv, r.id, uint32(len(data)))
		return Verdict{}
	}
}

// PlaceDatagram is PlaceSend for a message that its sender does not repeat. If its client's backlog is full, the
// message is dropped, and the next is placed in the same receive.
func (q *QP) PlaceDatagram(data []byte) Verdict {
	v := q.PlaceSend(data, uint64(len(data)))
	switch v.Is {
	case Busy:
		q.Recv.Interrupt()
	case Revoked:
		q.FailReceive(v, 0)
	}
	return v
}

// EndSend completes the receive of a Send.
func (q *QP) EndSend(e Ending) Verdict {
	var w abi.CQE
	q.Recv.describe(&w, abi.StatusSuccess)
	w.SrcQP, w.SourceLID = e.SrcQP, e.SourceLID
	if e.Invalidates {
		if v := q.invalidate(e.STag); v != mem.Allowed {
			return q.deny(v, e.STag, 0, 0, 0)
		}
		w.WCFlags, w.ImmOrSTag = abi.WCWithInv, uint32(e.STag)
	}
	if e.HasImmediate {
		w.WCFlags, w.ImmOrSTag = abi.WCWithImm, e.Immediate
	}
	if e.HeaderRoom > 0 {
		w.WCFlags |= abi.WCGRH
	}
	q.Stats.BytesRecv -= uint64(e.HeaderRoom)
	q.Recv.arrived(&w, e.Solicited)
	return Verdict{}
}

// invalidate removes the peer's rights to a memory window (RFC 5040 section 5.3). A target queue
// pair of an XRC domain cannot invalidate anything, because it has no protection domain.
func (q *QP) invalidate(stag mem.STag) mem.Violation {
	if q.Domain != nil {
		return mem.NoRight
	}
	return q.t.Regions.Invalidate(stag, q.user())
}

// FailReceive completes the current receive with the status for a verdict of PlaceSend or
// EndSend; vendor becomes the completion's vendor_err.
func (q *QP) FailReceive(v Verdict, vendor uint32) {
	status := uint32(abi.StatusGeneralErr)
	switch v.Is {
	case TooLong:
		status = abi.StatusLocLenErr
	case Revoked:
		status = abi.StatusLocProtErr
	}
	q.Recv.fail(status, vendor)
}

// PlaceWrite writes data to address va of the region stag, with the peer's rights. The rights are
// checked for rest bytes: the remaining length of the message, as far as the carrier knows it. A
// Write of 0 bytes touches nothing, and its STag is not checked (RFC 5040 section 5.4).
func (q *QP) PlaceWrite(stag mem.STag, va uint64, data []byte, rest uint64) Verdict {
	q.t.heardFrom(q)
	var r *mem.Region
	if len(data) > 0 {
		if r = q.written; r == nil || r.STag != stag || r.Dead() {
			r = q.t.Regions.Lookup(stag)
			q.written = r
		}
		v := q.checkRemote(r, va, rest, mem.RemoteWrite)
		if v == mem.Allowed && r.Missing(va, uint64(len(data)), true) {
			v = mem.Unmapped
		}
		if v != mem.Allowed {
			return q.deny(v, stag, va, rest, mem.RemoteWrite)
		}
		if q.backlogged(q.Owner(r)) {
			return Verdict{Is: Busy}
		}
	}
	if by := q.Client.Interceptor; by != nil {
		if v := by.Write(q, r, va, data); v.Is != Done {
			return v
		}
	}
	if r == nil {
		return Verdict{}
	}
	q.Store(r, va, data)
	q.Stats.BytesRecv += uint64(len(data))
	q.placed(abi.WCRDMAWrite, va, uint32(len(data)))
	return Verdict{}
}

// EndWrite ends a Write.
func (q *QP) EndWrite() {
	q.writeEnds()
	q.writeArrived()
}

// EndWriteImmediate ends a Write of n bytes with immediate data, which takes a receive.
func (q *QP) EndWriteImmediate(srqn, imm, n uint32, solicited bool) Verdict {
	if v := q.BeginReceive(srqn, 0); v.Is != Done {
		return v
	}
	q.writeEnds()
	var w abi.CQE
	q.Recv.describe(&w, abi.StatusSuccess)
	w.Opcode, w.ByteLen, w.WCFlags, w.ImmOrSTag = abi.WCRecvRDMAWithImm, n, abi.WCWithImm, imm
	q.Recv.arrived(&w, solicited)
	return Verdict{}
}

func (q *QP) writeEnds() {
	if by := q.Client.Interceptor; by != nil {
		by.WriteEnds(q)
	}
}

// Atomic carries out the peer's atomic operation at address va of the region stag. On the
// fallback path done is false: later is called with the original value, and receives that
// complete in the meantime wait for it.
func (q *QP) Atomic(stag mem.STag, va uint64, op *mem.AtomicOp, later func(original uint64)) (original uint64,
	done bool, v Verdict) {
	q.t.heardFrom(q)
	r := q.t.Regions.Lookup(stag)
	why := q.checkRemote(r, va, mem.WordLen, mem.RemoteAtomic)
	if why == mem.Allowed {
		why = r.CheckAtomic(va)
	}
	switch {
	case why != mem.Allowed:
		return 0, false, q.deny(why, stag, va, mem.WordLen, mem.RemoteAtomic)
	case q.backlogged(q.Owner(r)), r.Shared() && q.jobs.done != q.jobs.issued: // earlier writes may be to the same memory
		return 0, false, Verdict{Is: Busy}
	}
	if by := q.Client.Interceptor; by != nil {
		if v := by.Message(q, MessageAtomic, nil); v.Is != Done {
			return 0, false, v
		}
	}
	original, done = q.atomic(r, va, op, later)
	return original, done, Verdict{}
}

// checkRemote checks whether the peer may access n bytes at va with the rights want. Both the
// region and the queue pair must grant them.
func (q *QP) checkRemote(r *mem.Region, va, n uint64, want uint32) mem.Violation {
	if q.Type == abi.QPTypeXRCSend {
		return mem.NoRight // an XRC_SEND queue pair serves no requests
	}
	v := r.CheckRemote(mem.User{PD: q.remotePD(r), Stream: q.QPN}, va, n, want)
	if v == mem.Allowed && q.Attr.QPAccessFlags&want != want {
		return mem.NoRight
	}
	return v
}

// AwaitsAnswer returns the Read or atomic at index i of the send queue if its answer is still
// outstanding, else nil.
func (q *QP) AwaitsAnswer(i uint32, atomic bool) *SendWR {
	if !q.SQ.Holds(i) {
		return nil
	}
	if wr := q.SQ.At(i); wr.IsRead() && wr.Op.Atomic == atomic && wr.State == SendSent && !wr.answered {
		return wr
	}
	return nil
}

// PlaceResponse writes the next bytes of the answer to a Read. The caller has checked that they
// fit. The last bytes complete the Read.
func (q *QP) PlaceResponse(wr *SendWR, data []byte) Verdict {
	switch {
	case len(data) > 0 && q.Client.Backlogged():
		return Verdict{Is: Busy}
	case !q.scatter(wr.request(), wr.list, wr.got, data):
		return Verdict{Is: Revoked}
	}
	wr.got += uint32(len(data))
	q.Stats.BytesRecv += uint64(len(data))
	q.placed(wr.Op.Completion, wr.id, uint32(len(data)))
	if wr.got == wr.Length && wr.State == SendSent {
		q.readAnswered(wr)
	}
	return Verdict{}
}

// PlaceOriginal writes the original value that an atomic operation has returned, and completes
// the operation.
func (q *QP) PlaceOriginal(wr *SendWR, original uint64) Verdict {
	var b [mem.WordLen]byte
	binary.NativeEndian.PutUint64(b[:], original)
	return q.PlaceResponse(wr, b[:])
}
