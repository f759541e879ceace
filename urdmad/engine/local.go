package engine

import (
	"urdma/urdmad/mem"
	"urdma/verbs/abi"
	"urdma/wire"
)

// This file is the same-host shortcut: work requests between two queue pairs of
// one urdmad are carried out by one copy, after the checks that the wire's
// receiver makes. No packet is built.

// localBudget bounds the bytes one queue pair moves in a turn.
const localBudget = 256 << 10

// sendLocal carries out work requests of a local connection.
func (c *Conn) sendLocal() (n int) {
	qp, budget := c.qp, localBudget
	for budget > 0 && c.peer != nil && c.requestReady() {
		wr := qp.wr(qp.sqNext)
		moved, code := c.carryOut(wr)
		budget -= moved + 64
		n++
		if code == wire.TermUntaggedNoBuffer && c.mayWait(0, c.peer.RNRRetry) {
			return n
		}
		if c.rnr.waiting {
			c.ready()
		}
		if code != 0 {
			c.showRefusal(wr, code)
			c.refuseLocal(wr, code)
			return n
		}
		if c.state != connOpen && c.state != connDraining {
			return n
		}
		if wr.state == wrSent {
			c.e.Stats.LocalMessages++
			qp.sqNext++
			c.spoke()
			if !c.holdCompletion(wr) {
				c.talk.holdTill = 0
				c.e.completeSends(qp)
			}
		} else if moved == 0 {
			return n // waits for the fallback path
		}
	}
	if budget <= 0 {
		c.e.runq.add(qp)
	}
	return n
}

// carryOut does the next part of a work request and returns the bytes moved.
func (c *Conn) carryOut(wr *sendWR) (moved int, code wire.TermCode) {
	peer := c.peer.qp
	if peer == nil || peer.state != abi.QPSRTS {
		return 0, wire.TermOperationStream
	}
	switch wr.op {
	case abi.WRRDMAWrite:
		return c.localWrite(wr, peer)
	case abi.WRRDMARead:
		return c.localRead(wr, peer)
	}
	return c.localSend(wr, peer)
}

// part returns the longest run of source bytes at the position reached, at most
// limit of them.
func (qp *QP) part(slot uint32, wr *sendWR, off, limit uint32) []byte {
	if wr.src != nil {
		return wr.src[off:min(wr.length, off+limit)]
	}
	list := qp.wrSGE(slot)[:wr.nsge]
	for i := range list {
		if s := &list[i]; off < s.n {
			return s.bytes[off:min(s.n, off+limit)]
		}
		off -= list[i].n
	}
	return nil
}

func (c *Conn) localWrite(wr *sendWR, peer *QP) (moved int, code wire.TermCode) {
	qp, e := c.qp, c.e
	if wr.length == 0 {
		c.showRequest(wr)
		wr.state = wrSent
		return 0, 0
	}
	r := e.mrs.Lookup(wr.rkey)
	if code := r.CheckTagged(peer.PD, wr.raddr, uint64(wr.length), mem.RemoteWrite, false); code != 0 {
		return 0, code
	}
	for moved < localBudget && wr.sent < wr.length {
		src := qp.part(qp.sqNext, wr, wr.sent, localBudget)
		e.store(peer, r, wr.raddr+uint64(wr.sent), src)
		wr.sent += uint32(len(src))
		moved += len(src)
	}
	if wr.sent == wr.length {
		c.showRequest(wr)
		wr.state = wrSent
		e.writeArrived(peer)
	}
	peer.Stats.BytesRecv += uint64(moved)
	return moved, 0
}

func (c *Conn) localSend(wr *sendWR, peer *QP) (moved int, code wire.TermCode) {
	qp, e := c.qp, c.e
	if !peer.recv.active {
		if code := e.takeReceive(peer); code != 0 {
			return 0, code
		}
	}
	if wr.length > peer.recv.capacity {
		e.endReceive(peer, abi.CQE{Status: abi.StatusLocLenErr, VendorErr: uint32(wire.TermUntaggedTooLong)}, false)
		return 0, wire.TermUntaggedTooLong
	}
	for moved < localBudget && wr.sent < wr.length {
		src := qp.part(qp.sqNext, wr, wr.sent, localBudget)
		e.scatter(peer, src)
		wr.sent += uint32(len(src))
		moved += len(src)
	}
	if wr.sent < wr.length {
		return moved, 0
	}
	code = e.sendArrived(peer, wr.op == abi.WRSendWithInv, wr.inv, wr.flags&abi.SendSolicited != 0)
	if code == 0 {
		c.showRequest(wr)
		wr.state = wrSent
	}
	return moved, code
}

func (c *Conn) localRead(wr *sendWR, peer *QP) (moved int, code wire.TermCode) {
	qp, e := c.qp, c.e
	if wr.length == 0 {
		c.localReadDone(wr, nil)
		return 0, 0
	}
	r := e.mrs.Lookup(wr.rkey)
	if code := r.CheckTagged(peer.PD, wr.raddr, uint64(wr.length), mem.RemoteRead, true); code != 0 {
		return 0, code
	}
	src := wr.src
	if src == nil {
		src = r.Bytes(wr.raddr, uint64(wr.length))
	}
	if src == nil {
		c.stageLocalRead(wr, r, peer)
		return 0, 0
	}
	n := min(wr.length-wr.readGot, localBudget)
	e.scatterTo(qp, qp.wrSGE(qp.sqNext)[:wr.nsge], wr.readGot, src[wr.readGot:wr.readGot+n])
	wr.readGot += n
	if wr.readGot == wr.length {
		c.localReadDone(wr, src)
	}
	return int(n), 0
}

func (c *Conn) localReadDone(wr *sendWR, src []byte) {
	c.showRequest(wr)
	c.showResponse(wr, src)
	wr.state, wr.answered, wr.asyncUntil = wrSent, true, c.qp.asyncIssued
	c.qp.readsOut--
}

// stageLocalRead fetches a Read's source through the fallback path.
func (c *Conn) stageLocalRead(wr *sendWR, r *mem.Region, peer *QP) {
	qp, e := c.qp, c.e
	wr.state = wrStaging
	qp.stages++
	wr.stage = qp.stages
	stage, buf := wr.stage, make([]byte, wr.length)
	r.Hold()
	e.submit(qp, r.Space, false, r.ClientAddr(wr.raddr), buf, func() {
		r.Release()
		if wr.state == wrStaging && wr.stage == stage {
			wr.src, wr.state = buf, wrQueued
			e.runq.add(qp)
		}
	})
}

// refuseLocal ends a local connection as a Terminate would: the work request
// fails with the cause, both queue pairs go to the error state.
func (c *Conn) refuseLocal(wr *sendWR, code wire.TermCode) {
	e := c.e
	e.Stats.TerminatesSent[code]++
	e.log.Info("work request refused", "qpn", c.qp.QPN, "client", c.qp.Client.Name, "cause", code.String())
	e.completeSends(c.qp)
	e.failOldest(c.qp, statusOf(code), uint32(code))
	peer := c.peer
	c.closeReason = CloseTerminated
	if peer != nil && peer.qp != nil {
		event := uint32(abi.EventQPAccessErr)
		if code.Layer() == 1 && code.Type() == 2 {
			event = abi.EventQPReqErr
		}
		e.errorQP(peer.qp)
		ev := abi.AsyncEvent{EventType: event, Handle: peer.qp.Handle}
		e.SendEvent(peer.qp.Async, abi.Bytes(&ev))
	}
	c.finish()
}
