package engine

import (
	"urdma/verbs/abi"
	"urdma/wire"
)

// terminateToken marks the Terminate message among the reliability layer's
// tokens.
const terminateToken = ^uint64(0)

// isTerminate looks at a segment's RDMAP opcode without further checks.
func isTerminate(head []byte) bool {
	return len(head) >= wire.UntaggedLen && wire.Opcode(head[1]&0xf) == wire.OpTerminate && head[0]&0x80 == 0
}

// refuse answers a wrong segment: the queue pair fails here, and the peer gets
// a Terminate with the cause and the refused segment's headers. From now on we
// acknowledge everything before that segment and nothing more, so that the peer
// fails the work request it belongs to.
func (c *Conn) refuse(psn wire.PSN, code wire.TermCode, s *segment, headerLen int, op wire.Opcode) {
	e, qp := c.e, c.qp
	e.Stats.TerminatesSent[code]++
	e.note = "refused: " + code.String()
	e.log.Info("segment refused", "qpn", qp.QPN, "client", qp.Client.Name, "peer", c.PeerIP.String(), "cause", code.String())
	c.frozen, c.ackFrozen = true, psn
	c.terminate = terminateMessage(code, s, headerLen, op)
	c.closeReason = CloseTerminated
	event := uint32(abi.EventQPAccessErr)
	if code.Layer() == 1 && code.Type() == 2 {
		event = abi.EventQPReqErr
	}
	e.errorQP(qp)
	ev := abi.AsyncEvent{EventType: event, Handle: qp.Handle}
	e.SendEvent(qp.Async, abi.Bytes(&ev))
	c.finish() // sends the Terminate, and the fin behind it
}

// terminateMessage builds the DDP segment of a Terminate: queue 2, MSN 1.
func terminateMessage(code wire.TermCode, s *segment, headerLen int, op wire.Opcode) []byte {
	t := wire.Terminate{Code: code}
	if headerLen > 0 {
		t.HasDDPLen, t.SegmentLen = true, uint16(min(len(s.data), 0xffff))
		t.DDPHeader = s.head[:headerLen]
		if op == wire.OpReadRequest && len(s.head) >= headerLen+wire.ReadRequestLen {
			t.ReadRequest = s.head[headerLen : headerLen+wire.ReadRequestLen]
		}
	}
	d := wire.DDP{Last: true, Op: wire.OpTerminate, QN: wire.QueueTerminate, MSN: 1}
	b := make([]byte, wire.UntaggedLen+wire.MaxTerminateLen)
	n := d.Put(b)
	return b[:n+t.Put(b[n:])]
}

// terminated takes the peer's Terminate: the work request it names fails with
// the cause, the rest is flushed. An extended peer's acknowledgement covers what
// is in front of the refused segment and no more (docs/WIRE.md chapter 6).
func (c *Conn) terminated(head *wire.TRP, s *segment) {
	e, qp := c.e, c.qp
	if c.extended && !c.acknowledged(head) {
		return
	}
	c.hear()
	var d wire.DDP
	var t wire.Terminate
	at, err := d.Parse(s.head)
	if err == nil {
		_, err = t.Parse(s.head[at:])
	}
	if err != nil {
		e.badFrame(err.Error())
		t.Code = wire.TermOperationUnspecified
	}
	e.Stats.TerminatesGot[t.Code]++
	e.log.Info("peer terminated the connection", "qpn", qp.QPN, "client", qp.Client.Name, "cause", t.Code.String())
	c.closeReason = CloseTerminated
	if e.completeUpTo(qp, &t) {
		e.failOldest(qp, statusOf(t.Code), uint32(t.Code))
	}
	c.finish()
}

// completeUpTo completes the work requests before the one that a Terminate
// names: the peer works in order, so those were carried out. Reads among them
// that are not done are flushed. It reports whether a work request is to blame,
// which then is the oldest: a refused Read Response was none of ours.
func (e *Engine) completeUpTo(qp *QP, t *wire.Terminate) bool {
	var d wire.DDP
	if t.DDPHeader == nil {
		return true
	}
	if _, err := d.Parse(t.DDPHeader); err != nil {
		return true
	}
	for i := qp.sqHead; i != qp.sqNext+1 && i != qp.sqTail; i++ {
		if qp.wr(i).refusedBy(&d) {
			e.completeBefore(qp, i)
			return true
		}
	}
	return d.Op != wire.OpReadResponse
}

func (e *Engine) completeBefore(qp *QP, i uint32) {
	for qp.sqHead != i {
		wr := qp.wr(qp.sqHead)
		status := uint32(abi.StatusSuccess)
		if wr.op == abi.WRRDMARead && (!wr.answered || qp.asyncDone < wr.asyncUntil) {
			status = abi.StatusWRFlushErr
		}
		e.completeOldest(qp, wr, status)
	}
	qp.Ring.SQ.PublishCons(qp.sqHead)
}

// refusedBy reports whether the refused segment with header d is part of wr.
func (wr *sendWR) refusedBy(d *wire.DDP) bool {
	if !wr.started {
		return false
	}
	switch wr.op {
	case abi.WRSend, abi.WRSendWithInv:
		return d.Op.IsSend() && d.MSN == wr.msn
	case abi.WRRDMARead:
		return d.Op == wire.OpReadRequest && d.MSN == wr.msn
	case abi.WRRDMAWrite:
		return d.Op == wire.OpWrite && d.STag == wr.rkey && d.TO-wr.raddr < uint64(max(wr.length, 1))
	}
	return false
}

// statusOf is the completion status that tells a Terminate's cause best.
func statusOf(code wire.TermCode) uint32 {
	switch code {
	case wire.TermProtectionSTag, wire.TermProtectionBounds, wire.TermProtectionAccess, wire.TermProtectionStream,
		wire.TermProtectionWrap, wire.TermTaggedSTag, wire.TermTaggedBounds, wire.TermTaggedStream, wire.TermTaggedWrap:
		return abi.StatusRemAccessErr
	case wire.TermUntaggedNoBuffer:
		return abi.StatusRNRRetryExcErr
	case wire.TermUntaggedTooLong, wire.TermUntaggedMSN, wire.TermUntaggedMO, wire.TermProtectionInvalidate:
		return abi.StatusRemInvReqErr
	}
	return abi.StatusRemOpErr
}
