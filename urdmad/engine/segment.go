package engine

import (
	"urdma/verbs/abi"
	"urdma/wire"
)

// This file cuts messages into DDP segments. A segment is described by a token
// (what it belongs to, and from which byte on), so one that is lost is built
// again from the work request and registered memory; no copy is kept.

const (
	tokenResponse = uint64(1) << 63
	tokenSlotAt   = 32
	tokenSlotMask = 1<<24 - 1
)

func makeToken(slot, off uint32) uint64 {
	return uint64(slot&tokenSlotMask)<<tokenSlotAt | uint64(off)
}

// build writes the segment that token names behind the packet's headers and
// returns its length.
func (c *Conn) build(b []byte, token uint64) int {
	qp := c.qp
	slot, off := uint32(token>>tokenSlotAt)&tokenSlotMask, uint32(token)
	if token&tokenResponse != 0 {
		return c.buildResponse(b, &qp.irq[slot&uint32(len(qp.irq)-1)], off)
	}
	wr := qp.wr(slot)
	switch wr.op {
	case abi.WRRDMAWrite:
		return c.buildWrite(b, qp, slot, wr, off)
	case abi.WRRDMARead:
		return c.buildReadRequest(b, qp, slot, wr)
	}
	return c.buildSend(b, qp, slot, wr, off)
}

func (c *Conn) buildWrite(b []byte, qp *QP, slot uint32, wr *sendWR, off uint32) int {
	n := min(wr.length-off, c.payloadMax[1])
	d := wire.DDP{Tagged: true, Last: off+n == wr.length, Op: wire.OpWrite, STag: wr.rkey, TO: wr.raddr + uint64(off)}
	at := d.Put(b)
	qp.gather(b[at:at+int(n)], slot, wr, off)
	return at + int(n)
}

func (c *Conn) buildSend(b []byte, qp *QP, slot uint32, wr *sendWR, off uint32) int {
	n := min(wr.length-off, c.payloadMax[0])
	d := wire.DDP{Last: off+n == wr.length, Op: sendOp(wr), QN: wire.QueueSend, MSN: wr.msn, MO: off}
	if d.Op.Invalidates() {
		d.STag = wr.inv
	}
	at := d.Put(b)
	qp.gather(b[at:at+int(n)], slot, wr, off)
	return at + int(n)
}

func sendOp(wr *sendWR) wire.Opcode {
	op := wire.OpSend
	if wr.op == abi.WRSendWithInv {
		op = wire.OpSendInv
	}
	if wr.flags&abi.SendSolicited != 0 {
		op += wire.OpSendSE - wire.OpSend
	}
	return op
}

func (c *Conn) buildReadRequest(b []byte, qp *QP, slot uint32, wr *sendWR) int {
	d := wire.DDP{Last: true, Op: wire.OpReadRequest, QN: wire.QueueReadRequest, MSN: wr.msn}
	at := d.Put(b)
	r := wire.ReadRequest{SinkSTag: wr.sink, Length: wr.length, SrcSTag: wr.rkey, SrcTO: wr.raddr}
	return at + r.Put(b[at:])
}

func (c *Conn) buildResponse(b []byte, rr *readResponse, off uint32) int {
	n := min(rr.length-off, c.payloadMax[1])
	d := wire.DDP{Tagged: true, Last: off+n == rr.length, Op: wire.OpReadResponse, STag: rr.sinkSTag, TO: rr.sinkTO + uint64(off)}
	at := d.Put(b)
	return at + copy(b[at:], rr.src[off:off+n])
}

// gather copies a work request's bytes from off on.
func (qp *QP) gather(dst []byte, slot uint32, wr *sendWR, off uint32) {
	if wr.nsge == 0 || wr.src != nil {
		copy(dst, wr.src[off:])
		return
	}
	list := qp.wrSGE(slot)[:wr.nsge]
	for i := range list {
		s := &list[i]
		if off >= s.n {
			off -= s.n
			continue
		}
		dst = dst[copy(dst, s.bytes[off:]):]
		if len(dst) == 0 {
			return
		}
		off = 0
	}
}

// next returns the token of the segment to send next, if there is one: read
// responses and work requests in turn. It starts messages, and advances.
func (c *Conn) next() (token uint64, ok bool) {
	response := c.responseReady()
	request := c.requestReady()
	c.turnServed = !c.turnServed
	switch {
	case response && (!request || c.turnServed):
		rr := c.qp.readResponse(c.qp.irqNext)
		return tokenResponse | makeToken(c.qp.irqNext&uint32(len(c.qp.irq)-1), rr.sent), true
	case request:
		wr := c.qp.wr(c.qp.sqNext)
		return makeToken(c.qp.sqNext&c.qp.sqMask, wr.sent), true
	}
	return 0, false
}

// sent notes that the segment of a token that next returned went out with a PSN.
func (c *Conn) sent(token uint64, psn wire.PSN) {
	qp := c.qp
	if token&tokenResponse != 0 {
		rr := qp.readResponse(qp.irqNext)
		rr.sent += min(rr.length-rr.sent, c.payloadMax[1])
		rr.end = psn.Add(1)
		if rr.sent == rr.length {
			qp.irqNext++
		}
		return
	}
	wr := qp.wr(qp.sqNext)
	wr.end = psn.Add(1)
	switch wr.op {
	case abi.WRRDMARead:
		wr.sent = wr.length
	case abi.WRRDMAWrite:
		wr.sent += min(wr.length-wr.sent, c.payloadMax[1])
	default:
		wr.sent += min(wr.length-wr.sent, c.payloadMax[0])
	}
	if wr.sent == wr.length {
		wr.state = wrSent
		qp.sqNext++
	}
}

func (c *Conn) responseReady() bool {
	qp := c.qp
	return qp.irqNext != qp.irqTail && qp.readResponse(qp.irqNext).src != nil
}

// requestReady reports whether the next work request can send a segment, and
// starts its message: numbers it and counts its Read.
func (c *Conn) requestReady() bool {
	qp := c.qp
	if qp.sqNext == qp.sqTail {
		return false
	}
	wr := qp.wr(qp.sqNext)
	if wr.state != wrQueued {
		return false
	}
	if wr.started {
		return true
	}
	if wr.flags&abi.SendFence != 0 && qp.readsOut > 0 {
		return false // RFC 5040 section 5.5: earlier Reads first
	}
	if wr.op == abi.WRRDMARead && qp.readsOut >= int(c.ORD) {
		return false
	}
	qp.start(wr)
	return true
}

// start numbers a message.
func (qp *QP) start(wr *sendWR) {
	wr.started = true
	switch wr.op {
	case abi.WRSend, abi.WRSendWithInv:
		wr.msn = qp.sendMSN
		qp.sendMSN = qp.sendMSN.Add(1)
	case abi.WRRDMARead:
		wr.msn = qp.readMSN
		qp.readMSN = qp.readMSN.Add(1)
		wr.sink = qp.sinkSTag(qp.sqNext)
		qp.readsOut++
	}
}
