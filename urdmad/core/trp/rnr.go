package trp

import (
	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/qp"
	"urdma/wire"
)

// A message for which no receive is posted yet waits here (qp/rnr.go). What
// arrives behind it waits with it, in order; no credits are given meanwhile.
//
// On a connection by number it is the sender that gives up: the receiver waits without
// end, acknowledges nothing from the message on and states credits of 0.

const finMax = clock.Second // a peer that has left is not waited for longer

// notReady is a connection's wait for a receive.
type notReady struct {
	qp.NotReady // the message is named by its first segment
	queue       []waiting
	timer       *clock.Timer
	lacks       lack
}

// heldOff is, by number, the wait of our message at the peer, which is named by our
// oldest segment that is not acknowledged.
type heldOff struct {
	qp.NotReady
	askAt clock.Time // when the peer is asked whether it still waits
}

// lack is what a message waits for.
type lack uint8

const (
	receive lack = iota
	memory       // its receive's memory takes no more yet
)

// waiting is a packet that was accepted and not delivered.
type waiting struct {
	psn    wire.PSN
	packet kept
}

func (w *notReady) append(psn wire.PSN, packet kept) {
	w.queue = append(w.queue, waiting{psn, packet})
}

// wait has the message whose first segment is psn wait, or wait on.
func (c *Conn) wait(psn wire.PSN) {
	w := &c.rnr
	another := w.Waiting()
	if w.Wait(uint64(psn), c.now()) {
		c.rel.SetCredits(0)
		c.s.Stats.ReceiverNotReady++
		c.FoundNoReceive(nil)
		if another { // and the one before it has its receive
			c.acknowledgeSoon()
		}
	}
	if w.timer == nil {
		w.timer = clock.NewTimer(c.retryNotReady)
	}
	c.s.clock.Set(w.timer, w.NextLook(c.now()))
}

func (c *Conn) acknowledgeSoon() {
	c.rel.OnAckRequested(c.now())
	c.ready()
}

// lacks notes what the next message waits for. The peer, which may give up for want
// of a receive, hears at once that it is another thing.
func (c *Conn) lacks(what lack) {
	if c.rnr.lacks != what && c.rnr.Waiting() {
		c.acknowledgeSoon()
	}
	c.rnr.lacks = what
}

// stated is the credits that a packet states: 0 tells the peer on a connection by
// number that it waits for a receive. Otherwise it may send the segment again that
// is kept here.
func (w *notReady) stated(credits uint32, byNumber bool) uint32 {
	if w.lacks == memory && byNumber {
		return max(credits, 1)
	}
	return credits
}

// noteHeldOff takes what a packet of the peer's, by number, says about our message at its
// ack: credits of 0 say that it waits for a receive. When it has done so for long
// enough, the send fails. That takes a packet that says so then: one that said that the
// message has its receive may be lost.
func (c *Conn) noteHeldOff(ack wire.PSN, credits uint32) {
	w := &c.heldOff
	if ack != c.rel.Acked() {
		return // or the packet was overtaken
	}
	if credits > 0 || ack == c.rel.Next() {
		w.End()
		return
	}
	limit := c.SendPatience()
	switch {
	case !w.Allows(uint64(ack), limit, c.now()):
		if c.QP.FailNotReady() {
			c.Failed()
		}
	case w.Wait(uint64(ack), c.now()):
		w.askAt = c.now() + limit
	}
}

// askTime is when to ask the peer whether our message still waits.
func (w *heldOff) askTime() clock.Time {
	if !w.Waiting() {
		return clock.Never
	}
	return w.askAt
}

func (c *Conn) askIfHeldOff() {
	if c.now() >= c.heldOff.askTime() {
		c.heldOff.askAt = c.now() + c.rel.Timeout()
		c.sendBare(wire.OpData, wire.FlagAckRequested, nil)
	}
}

// retryNotReady has Transmit look at the receive queue again.
func (c *Conn) retryNotReady() {
	if c.rnr.Waiting() && c.live() {
		c.later()
	}
}

// deliverWaiting goes on with what waits, as far as that has its receive.
func (c *Conn) deliverWaiting() {
	w := &c.rnr
	c.deliverKept()
	switch {
	case !c.live() || c.more:
	case len(w.queue) == 0:
		c.received()
	case c.end.finPending && c.now()-w.Since() > finMax:
		c.endByFin()
	}
}

// deliverKept delivers packets that were kept, in order, until one has to wait.
func (c *Conn) deliverKept() {
	w := &c.rnr
	for n := 0; len(w.queue) > 0 && c.live(); n++ {
		first := w.queue[0]
		if n == atOnce { // it waits for its turn, and is not refused for that
			c.rnr.Restart(c.now())
			c.lacks(memory)
			c.wait(first.psn)
			c.s.clock.Set(w.timer, clock.Never)
			c.later()
			return
		}
		var head [wire.MaxHeaderLen]byte
		seg := c.keptSegment(&first.packet, &head)
		if !c.deliver(first.psn, &seg) {
			c.wait(first.psn)
			return
		}
		if len(w.queue) > 0 { // else delivering it ended the connection, and gave it back
			w.queue = w.queue[1:]
			c.held.release(c.port.If, &first.packet.Held)
		}
	}
}

// received ends the wait.
func (c *Conn) received() {
	c.rnr.End()
	c.rnr.queue = nil
	c.s.clock.Set(c.rnr.timer, clock.Never)
	c.rel.SetCredits(c.held.window)
	c.acknowledgeSoon() // opens the peer's window
	c.deliverHeld()
}

// dropWaiting gives back what waits: the connection is over.
func (c *Conn) dropWaiting() {
	w := &c.rnr
	for i := range w.queue {
		c.held.release(c.port.If, &w.queue[i].packet.Held)
	}
	w.End()
	w.queue = nil
	if w.timer != nil {
		c.s.clock.Set(w.timer, clock.Never)
	}
}
