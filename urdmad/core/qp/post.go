package qp

import (
	"urdma/reason"
	"urdma/urdmad/core/mem"
	"urdma/verbs/abi"
	"urdma/verbs/ring"
)

// Post copies newly posted send work requests out of the client's ring, checks them and puts the
// queue pair in line. Receives stay in their ring until a message needs one. A queue pair that is
// not connected keeps its posts. Posts beyond a turn's budget are fetched in the next turn.
func (q *QP) Post() {
	q.SendCQ.tellMissed(q.t)
	if q.RecvCQ != q.SendCQ {
		q.RecvCQ.tellMissed(q.t)
	}
	switch q.state {
	case abi.QPSErr, abi.QPSSQE:
		q.SQ.more = false
		q.flushPosted(fetchBudget)
		return
	case abi.QPSRTS:
	default:
		return
	}
	s := &q.SQ
	prod, err := s.ring.Prod(s.tail)
	if err == nil && prod-s.head > s.mask+1 {
		err = ring.ErrIndex // the index covers slots that are in use
	}
	if err != nil {
		q.t.log.Warn("bad send queue index", "client", q.Client.Name, "qpn", q.QPN, "error", err)
		q.Fail(EventFatal, reason.SendIndex)
		return
	}
	asked := s.tail + 1
	n := 0
	for ; s.tail != prod && n < fetchBudget; n++ {
		asked = s.prefetch(asked, prod)
		q.fetch(s.tail)
		s.tail++
		q.Stats.SendsPosted++
	}
	q.t.spent += n * slotCost
	s.more = s.tail != prod
	q.t.Ready(q)
}

// fetch makes the private copy of send slot i. A work request that is wrong
// becomes one that fails in its turn.
func (q *QP) fetch(i uint32) {
	slot, list := &q.t.slot, q.t.list[:]
	q.SQ.ring.Read(i, slot, list)
	wr := q.SQ.use(&q.t.chunks, i)
	wr.renew(slot, i)
	if q.SigAll {
		wr.Flags |= abi.SendSignaled
	}
	if q.Type == abi.QPTypeXRCSend && wr.Op.TakesReceive {
		wr.STag = mem.STag(slot.RemoteSRQN)
	}
	wr.status = abi.StatusSuccess
	if wrong := q.resolve(i, wr, slot, list); wrong != 0 {
		wr.Fail(statusOf(wrong), wrong)
	}
	if by := q.Client.Interceptor; by != nil {
		by.Posted(q, i, slot.Opcode)
	}
	if q.Client.WatchAll {
		q.tellPosted(wr, slot.Opcode)
	}
}

// resolve checks a work request and finds its memory; it returns what is wrong, or 0.
func (q *QP) resolve(i uint32, wr *SendWR, slot *abi.SQE, list []abi.SGE) reason.Number {
	if !wr.Op.Supported || !q.SQ.agreed(wr.Op) || !wr.Op.Of(q.Type) || !q.namesQueue(wr.Op) {
		return q.notAgreed(wr.Op)
	}
	if wr.isLocal() {
		return 0 // checked in its turn
	}
	if wr.Flags&abi.SendInline != 0 {
		if slot.InlineLength > q.SQ.ring.MaxInline() || !wr.Op.Inline {
			return reason.InlineTooLong
		}
		if slot.InlineLength > q.MaxMessage {
			return q.lengthWrong()
		}
		wr.Length = slot.InlineLength
		wr.src = q.SQ.ring.Inline(i, wr.Length)
		return 0
	}
	if slot.NumSGE > q.Cap.MaxSendSGE {
		return reason.TooManySGEs
	}
	return q.resolveList(wr, list[:slot.NumSGE])
}

func (q *QP) resolveList(wr *SendWR, list []abi.SGE) reason.Number {
	var want uint32
	if wr.Op.WritesLocal {
		want = mem.LocalWrite
	}
	fallback := false
	var total uint64
	for j := range list {
		el := &list[j]
		if el.Length == 0 {
			continue
		}
		at := len(wr.list)
		e := &wr.list[:at+1][at]
		if !q.hold(e, el, q.PD, want) {
			if q.wrong.Length == 0 { // else an older invalid send fails first
				q.wrong = elementOf(j, el, q.PD)
			}
			return q.wrongElement(el, q.PD)
		}
		wr.list = wr.list[:at+1]
		fallback = fallback || e.bytes == nil
		total += uint64(el.Length)
	}
	if total > uint64(q.MaxMessage) {
		return q.lengthWrong()
	}
	wr.Length = uint32(total)
	if wr.Op.Atomic {
		if total < mem.WordLen {
			return reason.AtomicTooShort
		}
		wr.Length = mem.WordLen
	}
	if fallback && wr.Op.ReadsLocal {
		q.readAheadSend(wr)
	}
	return 0
}

// readAheadSend gives a work request its ReadAhead and starts reading, except if the worker reads
// the memory itself, if much is read ahead already, or if earlier Reads may still change the
// source (IBV_SEND_FENCE).
func (q *QP) readAheadSend(wr *SendWR) {
	q.SQ.setReadAhead(wr, newReadAhead(q, q.Client, wr.request(), wr.Length, wr.list))
	if !q.Client.Space.Direct() && wr.Flags&abi.SendFence == 0 && q.Client.bytesAhead < MaxReadAhead/2 {
		wr.ahead.Fill()
	}
}
