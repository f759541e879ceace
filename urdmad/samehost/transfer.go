package samehost

import (
	"urdma/urdmad/mem"
	"urdma/urdmad/qp"
	"urdma/urdmad/rdmap"
	"urdma/verbs/abi"
	"urdma/wire"
)

// budget bounds the bytes one queue pair moves in a turn; perMessage is what a
// message costs besides.
const (
	budget     = 256 << 10
	perMessage = 64
)

// outcome is how far carrying out a work request came.
type outcome struct {
	moved int        // bytes
	code  rdmap.Code // 0, or why it is refused
	done  bool
}

// Transmit is qp.Carrier's: it carries out work requests. Every completion that
// it writes may end the connection, of which it looks before it goes on.
func (c *Conn) Transmit() (n int) {
	left := budget
	for left > 0 && c.live() && c.QP.Ready() {
		wr := c.QP.SQ.At(c.QP.SQ.Next())
		out := c.carryOut(wr)
		left -= out.moved + perMessage
		n++
		switch {
		case !c.live():
			return n
		case out.code == rdmap.CodeNoReceive && c.mayWait():
			return n
		case out.code == rdmap.CodeNoReceive && c.ByNumber: // the sender's failure alone
			c.QP.FailOldest(abi.StatusRNRRetryExcErr, 0)
			c.Failed()
			return n
		case out.code != 0:
			c.refuse(out.code)
			return n
		}
		if out.moved > 0 || out.done {
			c.received()
		}
		if out.done {
			c.carriedOut(wr)
		} else if out.moved == 0 {
			return n // waits for the fallback path
		}
	}
	if left <= 0 {
		c.s.table.Ready(c.QP)
	}
	return n
}

// carriedOut completes the work request at Next, or has the completion wait for
// the peer's answer.
func (c *Conn) carriedOut(wr *qp.SendWR) {
	c.s.Stats.Messages++
	c.carried++
	wr.Mark = c.carried
	c.QP.SQ.Advance()
	if wr.IsRead() {
		c.QP.ReadAnswered(wr)
	}
	if !c.live() {
		return
	}
	c.spoke()
	if c.live() && !c.holdCompletion(wr) {
		c.talk.holdUntil = 0
		c.QP.Acknowledge(c.carried)
	}
}

// carryOut does the next part of a work request.
func (c *Conn) carryOut(wr *qp.SendWR) outcome {
	peer := c.other.QP
	if peer == nil || !qp.Receives(peer.State()) || c.QP.Type == abi.QPTypeXRCSend && peer.Type != abi.QPTypeXRCRecv {
		return outcome{code: rdmap.CodeNoPeer}
	}
	c.s.table.Heard(peer)
	if peer.Client.Backlogged() || wr.IsRead() && c.QP.Client.Backlogged() {
		c.pause()
		return outcome{}
	}
	switch {
	case wr.Op.Atomic:
		return c.atomic(wr, peer)
	case wr.IsRead():
		return c.read(wr, peer)
	case wr.Op.RemoteAccess == 0:
		return c.send(wr, peer)
	case wr.AllSent:
		return c.writeImmediate(wr, peer)
	}
	return c.write(wr, peer)
}

// copyOut hands parts of the work request's source to put, as far as the budget
// allows. False: the source was deregistered, and the queue pair has failed; or
// put has refused.
func (c *Conn) copyOut(wr *qp.SendWR, put func(b []byte) bool) (moved int, ok bool) {
	i := c.QP.SQ.Next()
	for moved < budget && wr.Sent < wr.Length {
		src, ok := c.QP.Part(i, wr.Sent, budget)
		if !ok {
			c.revoked(i)
			return moved, false
		}
		if len(src) == 0 {
			break // still being staged
		}
		if !put(src) {
			return moved, false
		}
		wr.Sent += uint32(len(src))
		moved += len(src)
	}
	return moved, true
}

// revoked fails the queue pair because memory of the work request at index i was
// deregistered.
func (c *Conn) revoked(i uint32) {
	c.stopHolding()
	c.QP.FailRevoked(i)
	c.Failed()
}

func (c *Conn) write(wr *qp.SendWR, peer *qp.QP) outcome {
	if wr.Length == 0 {
		c.show()
		return c.written(wr, peer, 0)
	}
	r := c.s.table.Regions.Lookup(wr.RKey)
	if v := peer.CheckRemote(r, wr.RemoteAddr, uint64(wr.Length), mem.RemoteWrite); v != mem.Allowed {
		return outcome{code: rdmap.WriteCode(v)}
	}
	moved, ok := c.copyOut(wr, func(b []byte) bool {
		peer.Store(r, wr.RemoteAddr+uint64(wr.Sent), b)
		return true
	})
	if !ok {
		return outcome{}
	}
	peer.Stats.BytesRecv += uint64(moved)
	c.show()
	if wr.Sent < wr.Length {
		return outcome{moved: moved}
	}
	peer.WriteArrived()
	return c.written(wr, peer, moved)
}

// written ends a Write whose bytes are there, or goes on with its immediate data.
func (c *Conn) written(wr *qp.SendWR, peer *qp.QP, moved int) outcome {
	if !wr.Op.Immediate {
		return outcome{moved: moved, done: true}
	}
	wr.AllSent = true
	out := c.writeImmediate(wr, peer)
	out.moved += moved
	return out
}

// writeImmediate takes a receive for a Write with immediate.
func (c *Conn) writeImmediate(wr *qp.SendWR, peer *qp.QP) outcome {
	if code := rdmap.TakenCode(peer.Recv.Begin(uint32(wr.STag))); code != 0 {
		return outcome{code: code}
	}
	c.showImmediate()
	peer.Recv.Arrived(qp.WrittenWith(wr.Immediate, wr.Length), wr.Flags&abi.SendSolicited != 0)
	return outcome{done: true}
}

func (c *Conn) send(wr *qp.SendWR, peer *qp.QP) outcome {
	if active, _ := peer.Recv.Active(); !active {
		if code := rdmap.TakenCode(peer.Recv.Begin(uint32(wr.STag))); code != 0 {
			return outcome{code: code}
		}
		if wr.Length > peer.Recv.Room() {
			peer.Recv.End(abi.CQE{Status: abi.StatusLocLenErr, VendorErr: uint32(rdmap.CodeTooLong)}, false)
			return outcome{code: rdmap.CodeTooLong}
		}
	}
	fits := true
	moved, ok := c.copyOut(wr, func(b []byte) bool {
		fits = peer.Recv.Scatter(b)
		return fits
	})
	if !fits { // the receive's memory was deregistered
		peer.Recv.End(abi.CQE{Status: abi.StatusLocProtErr}, false)
		return outcome{code: rdmap.CodeCatastrophic}
	}
	if !ok {
		return outcome{}
	}
	if moved > 0 {
		c.show()
	}
	if wr.Sent < wr.Length {
		return outcome{moved: moved}
	}
	cqe, code := rdmap.Invalidate(peer, wr.Op.Invalidates, wire.STag(wr.STag))
	if code != 0 {
		return outcome{code: code}
	}
	if wr.Length == 0 {
		c.show()
	}
	if wr.Op.Immediate {
		cqe.WCFlags, cqe.ImmOrSTag = abi.WCWithImm, wr.Immediate
		c.showImmediate()
	}
	peer.Recv.Arrived(cqe, wr.Flags&abi.SendSolicited != 0)
	return outcome{moved: moved, done: true}
}

func (c *Conn) read(wr *qp.SendWR, peer *qp.QP) outcome {
	if wr.Length == 0 {
		c.show()
		c.showResponse(nil)
		return outcome{done: true}
	}
	r := c.s.table.Regions.Lookup(wr.RKey)
	if v := peer.CheckRemote(r, wr.RemoteAddr, uint64(wr.Length), mem.RemoteRead); v != mem.Allowed {
		return outcome{code: rdmap.ReadCode(v)}
	}
	src := c.source(wr, r)
	if src == nil {
		return outcome{} // still being staged
	}
	src = src[:min(uint32(len(src)), budget)]
	if !c.QP.ScatterResponse(c.QP.SQ.Next(), wr.Got, src) {
		c.revoked(c.QP.SQ.Next())
		return outcome{}
	}
	if wr.Got == 0 {
		c.show()
	}
	wr.Got += uint32(len(src))
	c.showResponse(src)
	wr.Consumed(wr.Got)
	return outcome{moved: len(src), done: wr.Got == wr.Length}
}

// source is what of a Read's source can be read now, from where it has come to.
func (c *Conn) source(wr *qp.SendWR, r *mem.Region) []byte {
	if b := r.Bytes(wr.RemoteAddr+uint64(wr.Got), uint64(wr.Length-wr.Got)); b != nil {
		return b
	}
	s := wr.Source()
	if s == nil {
		s = c.QP.StageSource(wr, r)
	}
	if !wr.Here(wr.Got) {
		return nil
	}
	return s.Bytes(wr.Got)
}

// refuse ends the connection as a Terminate would: the work request at Next fails
// with the cause, both queue pairs go to the error state.
func (c *Conn) refuse(code rdmap.Code) {
	if o := c.s.observer; o != nil {
		o.Refusal(c, code)
	}
	c.s.streams.TerminatesSent[code]++
	c.s.log.Info("work request refused", "qpn", c.QP.QPN, "client", c.QP.Client.Name, "cause", code.String())
	c.stopHolding()
	if !c.live() {
		return
	}
	c.QP.FailOldest(rdmap.StatusOf(c.oldest(), code), uint32(code))
	if !c.live() {
		return
	}
	c.reason = qp.CloseTerminated
	if peer := c.other.QP; peer != nil {
		peer.FlushWithEvent(rdmap.EventOf(code))
	}
	c.finish()
}

// show tells who captures how far the work request at Next was carried, and lets
// go of what was staged for it.
func (c *Conn) show() {
	if o := c.s.observer; o != nil {
		o.Request(c)
	}
	if wr := c.QP.SQ.At(c.QP.SQ.Next()); !wr.IsRead() {
		wr.Consumed(wr.Sent)
	}
}

func (c *Conn) showResponse(src []byte) {
	if o := c.s.observer; o != nil {
		o.Response(c, src)
	}
}

func (c *Conn) showImmediate() {
	if o := c.s.observer; o != nil {
		o.Immediate(c)
	}
}
