package engine

import (
	"urdma/urdmad/mem"
	"urdma/verbs/abi"
	"urdma/verbs/ring"
	"urdma/wire"
)

// MaxMessage is the longest message, in bytes (RFC 5040 allows 2^32-1).
const MaxMessage = 1 << 31

// post copies newly posted send work requests out of the client's ring, checks
// them and puts the queue pair in line for transmission. Receive work requests
// stay in their ring until a message needs one.
func (e *Engine) post(qp *QP) {
	switch qp.state {
	case abi.QPSErr:
		e.flushPosted(qp)
		return
	case abi.QPSRTS:
	default:
		return // not connected yet: looked at again when it is
	}
	prod, err := qp.Ring.SQ.Prod(qp.sqTail)
	if err == nil && prod-qp.sqHead > qp.sqMask+1 {
		err = ring.ErrIndex // over slots that are in use
	}
	if err != nil {
		e.log.Warn("bad send queue index", "client", qp.Client.Name, "qpn", qp.QPN, "error", err)
		e.failQP(qp, abi.EventQPFatal)
		return
	}
	for qp.sqTail != prod {
		e.fetch(qp, qp.sqTail)
		qp.sqTail++
		qp.Stats.SendsPosted++
	}
	e.runq.add(qp)
}

// fetch makes the private copy of send slot i. A work request that is wrong
// becomes one that fails in its turn.
func (e *Engine) fetch(qp *QP, i uint32) {
	var slot abi.SQE
	var elements [maxSGE]abi.SGE
	qp.Ring.SQ.Read(i, &slot, elements[:])
	wr := qp.wr(i)
	*wr = sendWR{id: slot.WRID, op: slot.Opcode, flags: slot.Flags,
		rkey: wire.STag(slot.RKey), inv: wire.STag(slot.ImmOrSTag), raddr: slot.RemoteAddr}
	if qp.SigAll {
		wr.flags |= abi.SendSignaled
	}
	wr.status = e.resolveSend(qp, i, wr, &slot, elements[:])
	if wr.status != abi.StatusSuccess {
		wr.state = wrFailed
	}
}

// resolveSend checks a work request and finds its memory; it returns an
// enum ibv_wc_status.
func (e *Engine) resolveSend(qp *QP, i uint32, wr *sendWR, slot *abi.SQE, elements []abi.SGE) uint32 {
	switch wr.op {
	case abi.WRSend, abi.WRSendWithInv, abi.WRRDMAWrite, abi.WRRDMARead:
	default:
		return abi.StatusLocQPOpErr
	}
	if wr.op == abi.WRRDMARead && qp.conn.ORD == 0 {
		return abi.StatusLocQPOpErr // none were agreed on
	}
	if wr.flags&abi.SendInline != 0 {
		if slot.InlineLength > qp.Ring.SQ.MaxInline() || wr.op == abi.WRRDMARead {
			return abi.StatusLocQPOpErr
		}
		wr.length = slot.InlineLength
		wr.src = qp.Ring.SQ.Inline(i, wr.length)
		return abi.StatusSuccess
	}
	if slot.NumSGE > qp.Cap.MaxSendSGE {
		return abi.StatusLocQPOpErr
	}
	return e.resolveSGE(qp, i, wr, elements[:slot.NumSGE])
}

func (e *Engine) resolveSGE(qp *QP, i uint32, wr *sendWR, elements []abi.SGE) uint32 {
	var want uint32
	if wr.op == abi.WRRDMARead {
		want = mem.LocalWrite
	}
	out := qp.wrSGE(i)
	fallback := false
	var total uint64
	for _, el := range elements {
		if el.Length == 0 {
			continue
		}
		r := e.mrs.Lookup(wire.STag(el.LKey))
		if !r.CheckLocal(qp.PD, el.Addr, uint64(el.Length), want) {
			return abi.StatusLocProtErr
		}
		r.Hold()
		out[wr.nsge] = sge{region: r, va: el.Addr, n: el.Length, bytes: r.Bytes(el.Addr, uint64(el.Length))}
		fallback = fallback || out[wr.nsge].bytes == nil
		wr.nsge++
		total += uint64(el.Length)
	}
	if total > MaxMessage {
		return abi.StatusLocLenErr
	}
	wr.length = uint32(total)
	if fallback && wr.op != abi.WRRDMARead {
		e.stageSend(qp, i, wr)
	}
	return abi.StatusSuccess
}

// maxSGE is the most scatter/gather elements a work request can have.
const maxSGE = 32

// MaxSGE is what devices report.
const MaxSGE = maxSGE
