package qp

import (
	"encoding/binary"

	"urdma/urdmad/core/mem"
	"urdma/verbs/abi"
)

// This file is what a message that arrives does to its queue pair, whatever carried
// it. A carrier calls these steps in the order of the message's bytes:
//
//	Send                  BeginReceive, PlaceSend for each piece, EndSend
//	Write                 PlaceWrite for each piece, EndWrite or EndWriteImmediate
//	Read, as responder    BeginRead, and a Source to read from
//	Read, as requester    AwaitsAnswer, PlaceResponse for each piece
//	atomic, as responder  Atomic
//	atomic, as requester  AwaitsAnswer, PlaceOriginal
//
// Every step checks all that it depends on before it changes anything, and returns
// a verdict that the carrier turns into its protocol's answer. receive_begin.go and
// receive_complete.go have the first and the last step of a message that takes a
// receive, source.go BeginRead.

// Verdict is what a step came to. The zero Verdict: it was carried out.
type Verdict struct {
	Is  Outcome
	Why mem.Violation // of Denied
}

// Outcome is the kind of a Verdict.
type Outcome uint8

const (
	Done       Outcome = iota
	Busy               // too much waits to be written to the client's memory; nothing was done, the step may be tried again
	NoReceive          // no receive is posted; nothing was done, the step may be tried again
	NoRoom             // the next receive has no room for the message; it stays posted
	BadReceive         // the receive was wrong, and has completed with the cause
	NoQueue            // the message names no shared receive queue that there is
	TooLong            // the message is longer than its receive, which is still under way: see FailReceive
	Revoked            // memory that is written to was deregistered; a receive is still under way: see FailReceive
	Denied             // memory that the peer may not use so
)

// PlaceSend writes the next bytes of a message into its receive. It has to have room
// for rest bytes: what is left of the message, as far as the carrier knows it.
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

// PlaceWrite writes data to va of the region stag, with the peer's rights. The
// rights are checked for rest bytes: what is left of the message, as far as the
// carrier knows it. A Write of no bytes touches nothing, and its STag is not
// looked at (RFC 5040 section 5.4).
func (q *QP) PlaceWrite(stag mem.STag, va uint64, data []byte, rest uint64) Verdict {
	q.t.heardFrom(q)
	var r *mem.Region
	if len(data) > 0 {
		if r = q.written; r == nil || r.STag != stag || r.Dead() {
			r = q.t.Regions.Lookup(stag)
			q.written = r
		}
		if v := q.checkRemote(r, va, rest, mem.RemoteWrite); v != mem.Allowed {
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

func (q *QP) writeEnds() {
	if by := q.Client.Interceptor; by != nil {
		by.WriteEnds(q)
	}
}

// Atomic carries an atomic operation of the peer's out at va of the region stag. On
// the fallback path done is false, later gets what was there, and receives that
// complete meanwhile wait for it.
func (q *QP) Atomic(stag mem.STag, va uint64, op *mem.AtomicOp, later func(original uint64)) (original uint64, done bool, v Verdict) {
	q.t.heardFrom(q)
	r := q.t.Regions.Lookup(stag)
	why := q.checkRemote(r, va, mem.WordLen, mem.RemoteAtomic)
	if why == mem.Allowed {
		why = r.CheckAtomic(va)
	}
	switch {
	case why != mem.Allowed:
		return 0, false, q.deny(why, stag, va, mem.WordLen, mem.RemoteAtomic)
	case q.backlogged(q.Owner(r)), r.Shared() && q.jobs.done != q.jobs.issued: // writes before it may be of the same memory
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

// checkRemote says whether the peer may use n bytes at va with the rights want:
// region and queue pair have to grant them.
func (q *QP) checkRemote(r *mem.Region, va, n uint64, want uint32) mem.Violation {
	if q.Type == abi.QPTypeXRCSend {
		return mem.NoRight // it serves nobody
	}
	v := r.CheckRemote(mem.User{PD: q.remotePD(r), Stream: q.QPN}, va, n, want)
	if v == mem.Allowed && q.Attr.QPAccessFlags&want != want {
		return mem.NoRight
	}
	return v
}

// AwaitsAnswer is the Read, or the atomic, at index i of the send queue, if its
// answer is still to come; else nil.
func (q *QP) AwaitsAnswer(i uint32, atomic bool) *SendWR {
	if !q.SQ.Holds(i) {
		return nil
	}
	if wr := q.SQ.At(i); wr.IsRead() && wr.Op.Atomic == atomic && wr.State == SendSent && !wr.answered {
		return wr
	}
	return nil
}

// PlaceResponse writes the next bytes of the answer to a Read, for which there is
// room. The last of them complete it.
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

// PlaceOriginal writes what an atomic has found, and completes it.
func (q *QP) PlaceOriginal(wr *SendWR, original uint64) Verdict {
	var b [mem.WordLen]byte
	binary.NativeEndian.PutUint64(b[:], original)
	return q.PlaceResponse(wr, b[:])
}
