package engine

import (
	"urdma/verbs/abi"
)

var sendOpcodes = [...]uint32{
	abi.WRRDMAWrite: abi.WCRDMAWrite, abi.WRRDMAWriteWithImm: abi.WCRDMAWrite,
	abi.WRSend: abi.WCSend, abi.WRSendWithImm: abi.WCSend, abi.WRSendWithInv: abi.WCSend,
	abi.WRRDMARead: abi.WCRDMARead,
}

// completeSends completes send work requests from the oldest on, as far as they
// are done, and frees acknowledged read responses.
func (e *Engine) completeSends(qp *QP) {
	c := qp.conn
	if c == nil {
		return
	}
	before := qp.sqHead
	for qp.sqHead != qp.sqTail {
		wr := qp.wr(qp.sqHead)
		if wr.state == wrFailed {
			e.failOldest(qp, wr.status, wr.vendor)
			c.failed()
			return
		}
		if !c.sendDone(qp, wr) {
			break
		}
		e.completeOldest(qp, wr, abi.StatusSuccess)
	}
	if qp.sqHead != before {
		qp.Ring.SQ.PublishCons(qp.sqHead)
	}
	for qp.irqHead != qp.irqNext {
		rr := qp.readResponse(qp.irqHead)
		if c.port != nil && rr.end.After(c.rel.Acked()) {
			break
		}
		qp.popReadResponse()
	}
	if c.state == connDraining && c.drained() {
		c.e.hasten(c.timer, c.e.now)
	}
}

// sendDone reports whether the oldest work request is done: acknowledged, and a
// Read answered with all of it written.
func (c *Conn) sendDone(qp *QP, wr *sendWR) bool {
	if wr.state != wrSent {
		return false
	}
	if c.port != nil && wr.end.After(c.rel.Acked()) {
		return false
	}
	if c.talk.holdTill != 0 && wr.op == abi.WRRDMAWrite {
		return false
	}
	return wr.op != abi.WRRDMARead || wr.answered && qp.asyncDone >= wr.asyncUntil
}

// completion begins what every completion of a queue pair's work request says;
// index is that of the request in its queue.
func (qp *QP) completion(id uint64, index, status uint32) abi.CQE {
	return abi.CQE{WRID: id, Index: index, Status: status, QPNum: qp.QPN, UserHandle: qp.UserHandle}
}

// fail tells the client that from the oldest send on all complete with an entry.
func (qp *QP) fail() {
	if !qp.failed {
		qp.failed = true
		qp.Ring.SQ.PublishFailed(qp.sqHead)
	}
}

// completeOldest forgets the oldest work request and writes its completion. The
// index moves before the client can see the completion: a program whose queue
// holds one request posts the next at once.
func (e *Engine) completeOldest(qp *QP, wr *sendWR, status uint32) {
	w := qp.completion(wr.id, qp.sqHead, status)
	w.VendorErr, w.ByteLen = wr.vendor, wr.length
	if int(wr.op) < len(sendOpcodes) {
		w.Opcode = sendOpcodes[wr.op]
	}
	if status != abi.StatusSuccess {
		qp.fail()
	}
	signaled := wr.flags&abi.SendSignaled != 0 || qp.failed
	if status == abi.StatusSuccess {
		qp.Stats.MessagesSent++
		qp.Stats.BytesSent += uint64(wr.length)
	}
	qp.release(qp.sqHead)
	qp.sqHead++
	if int32(qp.sqNext-qp.sqHead) < 0 {
		qp.sqNext = qp.sqHead
	}
	if signaled {
		qp.Ring.SQ.PublishCons(qp.sqHead)
		e.complete(qp.SendCQ, &w, false)
	}
}

// failOldest completes the oldest work request, if there is one, with an error.
func (e *Engine) failOldest(qp *QP, status, vendor uint32) {
	if qp == nil || qp.state == abi.QPSErr {
		return
	}
	if qp.sqHead != qp.sqTail {
		wr := qp.wr(qp.sqHead)
		wr.vendor = vendor
		e.completeOldest(qp, wr, status)
		qp.Ring.SQ.PublishCons(qp.sqHead)
	}
}

// errorQP moves a queue pair to the error state and flushes both queues.
func (e *Engine) errorQP(qp *QP) {
	if qp.state == abi.QPSErr {
		return
	}
	wasReset := qp.state == abi.QPSReset
	qp.state = abi.QPSErr
	qp.fail()
	for qp.irqHead != qp.irqTail {
		qp.popReadResponse()
	}
	qp.irqNext = qp.irqHead
	qp.readsOut = 0
	for qp.sqHead != qp.sqTail {
		wr := qp.wr(qp.sqHead)
		e.completeOldest(qp, wr, abi.StatusWRFlushErr)
	}
	if qp.recv.active {
		e.endReceive(qp, abi.CQE{Status: abi.StatusWRFlushErr}, false)
	}
	if !wasReset {
		e.flushPosted(qp)
	}
}

// flushPosted completes everything a client has posted to a queue pair in error.
func (e *Engine) flushPosted(qp *QP) {
	var slot abi.SQE
	prod, err := qp.Ring.SQ.Prod(qp.sqTail)
	for ; err == nil && qp.sqTail != prod; qp.sqTail++ {
		qp.Ring.SQ.Read(qp.sqTail, &slot, nil)
		w := qp.completion(slot.WRID, qp.sqTail, abi.StatusWRFlushErr)
		if slot.Opcode < uint32(len(sendOpcodes)) {
			w.Opcode = sendOpcodes[slot.Opcode]
		}
		qp.Ring.SQ.PublishCons(qp.sqTail + 1)
		e.complete(qp.SendCQ, &w, false)
	}
	qp.sqHead, qp.sqNext = qp.sqTail, qp.sqTail

	var rqe abi.RQE
	prod, err = qp.Ring.RQ.Prod(qp.rqHead)
	for ; err == nil && qp.rqHead != prod; qp.rqHead++ {
		qp.Ring.RQ.Read(qp.rqHead, &rqe, nil)
		w := qp.completion(rqe.WRID, qp.rqHead, abi.StatusWRFlushErr)
		w.Opcode = abi.WCRecv
		qp.Ring.RQ.PublishCons(qp.rqHead + 1)
		e.completeRecv(qp, &w, false)
	}
}

// failQP is for errors that no work request stands for: the queue pair goes to
// the error state, its connection ends, and the client gets an asynchronous
// event.
func (e *Engine) failQP(qp *QP, event uint32) {
	if qp.gone || qp.state == abi.QPSErr {
		return
	}
	e.errorQP(qp)
	ev := abi.AsyncEvent{EventType: event, Handle: qp.Handle}
	e.SendEvent(qp.Async, abi.Bytes(&ev))
	if c := qp.conn; c != nil {
		c.failed()
	}
}

// failed ends a connection whose own queue pair failed.
func (c *Conn) failed() {
	if c.state != connOpen && c.state != connDraining {
		return
	}
	c.closeReason = CloseLocal
	c.finish()
}
