package samehost

import (
	"urdma/reason"
	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/qp"
	"urdma/urdmad/core/rdmap"
	"urdma/verbs/abi"
)

// budget bounds the bytes that one queue pair moves in a turn; perMessage is the cost of a message in
// addition to its bytes.
const (
	budget     = 256 << 10
	perMessage = 64
)

// outcome is the progress of a work request.
type outcome struct {
	moved int  // bytes
	done  bool // all of the work request is executed
	v     qp.Verdict
	code  rdmap.Code // the code for a verdict that refuses it
}

// refusal returns the outcome for a verdict; code is the cause unless the verdict is to wait.
func refusal(v qp.Verdict, code rdmap.Code) outcome { return outcome{v: v, code: code} }

// Transmit implements qp.Carrier: it executes work requests. Each completion that it writes may end the
// connection, so it checks that before it continues.
func (c *Conn) Transmit() (n int) {
	if o := c.other; o != nil {
		o.peerWrote()
	}
	if c.s.cuts != nil && c.stalls() {
		return 0
	}
	if r := &c.refused; c.live() && r.code != 0 {
		if c.unwritten.Waits() && c.now() < r.until {
			c.tryLater()
		} else {
			c.fail(r.index, r.code)
		}
		return 0
	}
	left := budget
	for left > 0 && c.live() && (c.answer.owed || c.QP.Ready()) {
		i := c.QP.SQ.Next()
		if c.answer.owed {
			i = c.answer.index
		}
		wr := c.QP.SQ.At(i)
		if c.answering(); !c.live() {
			return n
		}
		out := c.carryOut(i, wr)
		left -= out.moved + perMessage
		c.s.Stats.Bytes += uint64(out.moved)
		n++
		switch {
		case !c.live():
			return n
		case out.v.Is == qp.Busy, out.v.Is == qp.NoReceive && c.unwritten.Waits():
			c.pause()
			return n
		case out.v.Is == qp.NoReceive && c.mayWait():
			return n
		case out.v.Is == qp.NoReceive && c.ByNumber: // fails only the sender's queue pair
			c.QP.FailNotReady()
			c.Failed()
			return n
		case out.code != 0:
			c.refuse(i, out.code)
			return n
		}
		if out.moved > 0 || out.done {
			c.received()
		}
		if out.done {
			c.carriedOut(wr)
		} else if out.moved == 0 {
			return n // it waits for slow access to memory
		}
	}
	if left <= 0 {
		c.s.table.Ready(c.QP)
	}
	return n
}

// carriedOut completes a work request, or delays the completion until the peer's answer.
func (c *Conn) carriedOut(wr *qp.SendWR) {
	c.s.Stats.Messages++
	c.carried++
	c.unwritten.Placed(c.carried)
	c.said()
	if c.live() && !c.delayCompletion(wr) {
		c.delayedUntil = 0
		c.acknowledge()
	}
}

// acknowledge completes the executed work requests whose data are in the peer's memory.
func (c *Conn) acknowledge() {
	mark := c.carried
	if first, ok := c.unwritten.First(); ok {
		mark = first - 1
	}
	c.QP.Acknowledge(mark)
}

// peerWrote is called by the other end when more data are in its memory.
func (c *Conn) peerWrote() {
	more := c.unwritten.Advanced()
	if more || c.answer.owed {
		c.s.table.Ready(c.QP)
	}
	if more && c.delayedUntil == 0 {
		c.acknowledge()
	}
}

// mark returns the Mark of the work request that is being executed.
func (c *Conn) mark() uint64 { return c.carried + 1 }

// carryOut executes the next part of the work request at index i.
func (c *Conn) carryOut(i uint32, wr *qp.SendWR) outcome {
	peer := c.other.QP
	if peer == nil || !qp.Receives(peer.State()) || c.QP.Type == abi.QPTypeXRCSend && peer.Type != abi.QPTypeXRCRecv {
		return outcome{code: rdmap.CodeNoPeer}
	}
	switch {
	case wr.Op.Atomic:
		return c.atomic(i, wr, peer)
	case wr.IsRead():
		return c.read(i, wr, peer)
	case wr.Op.RemoteAccess == 0:
		return c.send(i, wr, peer)
	case wr.ImmediateNext():
		return c.writeImmediate(i, wr, peer)
	}
	return c.write(i, wr, peer)
}

// carry passes the pieces of the source of the work request at index i to place, within the budget. ok is
// false if place has refused a piece, or if the source was deregistered; then the queue pair has failed.
func (c *Conn) carry(i uint32, wr *qp.SendWR, place func(b []byte) qp.Verdict) (moved int, v qp.Verdict, ok bool) {
	for ok = true; moved < budget; {
		src, live := c.QP.Part(i, wr.Offset(), budget)
		if !live {
			c.revoked(i)
			return moved, v, false
		}
		if len(src) == 0 && wr.Offset() < wr.Length {
			break // being copied to staging memory
		}
		if v = place(src); v.Is != qp.Done {
			ok = false
			break
		}
		moved += len(src)
		c.QP.SQ.Sent(uint32(len(src)), c.mark(), wr.Op.RemoteAccess != 0)
		if wr.Offset() == wr.Length {
			break
		}
	}
	if wr.Offset() < wr.Length { // else its completion frees the rest
		wr.Consumed()
	}
	return moved, v, ok
}

func (c *Conn) write(i uint32, wr *qp.SendWR, peer *qp.QP) outcome {
	moved, v, ok := c.carry(i, wr, func(b []byte) qp.Verdict {
		off := wr.Offset()
		return peer.PlaceWrite(wr.RKey, wr.RemoteAddr()+uint64(off), b, uint64(wr.Length-off))
	})
	out := outcome{moved: moved, v: v, code: rdmap.WriteCode(v)}
	if !ok || wr.Offset() < wr.Length {
		return out
	}
	peer.EndWrite()
	if out.done = !wr.Op.Immediate; !out.done {
		out = c.writeImmediate(i, wr, peer)
		out.moved = moved
	}
	return out
}

// writeImmediate takes a receive for a Write with immediate.
func (c *Conn) writeImmediate(i uint32, wr *qp.SendWR, peer *qp.QP) outcome {
	e := wr.Ending()
	v := peer.EndWriteImmediate(uint32(wr.STag), e.Immediate, wr.Length, e.Solicited)
	if v.Is != qp.Done {
		return refusal(v, rdmap.SendCode(v))
	}
	if c.live() {
		c.QP.SQ.Sent(0, c.mark(), true)
	}
	return outcome{done: true}
}

func (c *Conn) send(i uint32, wr *qp.SendWR, peer *qp.QP) outcome {
	if active, _ := peer.Recv.Active(); !active {
		if v := peer.BeginReceive(uint32(wr.STag), 0); v.Is != qp.Done {
			return refusal(v, rdmap.SendCode(v))
		}
	}
	moved, v, ok := c.carry(i, wr, func(b []byte) qp.Verdict { return peer.PlaceSend(b, uint64(wr.Length-wr.Offset())) })
	out := outcome{moved: moved, v: v}
	if ok && wr.Offset() == wr.Length {
		out.v, out.done = peer.EndSend(wr.Ending()), true
	}
	if out.v.Is != qp.Done && out.v.Is != qp.Busy {
		out.code, out.done = rdmap.SendCode(out.v), false
		peer.FailReceive(out.v, uint32(out.code))
	}
	return out
}

// refused is a refusal that waits until earlier messages are in the peer's memory.
type refused struct {
	code  rdmap.Code // 0: no refusal waits
	index uint32
	until clock.Time // end of that wait
}

// refuse ends the connection as a Terminate would: the work request at index i fails with the cause, and
// both queue pairs enter the error state.
func (c *Conn) refuse(i uint32, code rdmap.Code) {
	if c.unwritten.Waits() {
		c.refused = refused{code, i, c.now() + drainTime}
		c.pause()
		return
	}
	c.fail(i, code)
}

func (c *Conn) fail(i uint32, code rdmap.Code) {
	c.s.streams.TerminatesSent[code]++
	c.s.log.Info("work request refused", "qpn", c.QP.QPN, "client", c.QP.Client.Name, "cause", code.String())
	op := c.QP.SQ.At(i).Op
	c.completeDelayed()
	if !c.live() {
		return
	}
	c.QP.CompleteBefore(i)
	if !c.live() {
		return
	}
	if peer := c.other.QP; peer != nil {
		c.QP.PeerFound(peer)
	}
	c.QP.FailOldest(rdmap.StatusOf(op, code), reason.Number(code))
	if !c.live() {
		return
	}
	c.reason = qp.CloseTerminated
	if peer := c.other.QP; peer != nil {
		peer.FlushWithEvent(rdmap.EventOf(code), reason.Number(code))
	}
	c.finish()
}
