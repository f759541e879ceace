package trp

import (
	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/qp"
	"urdma/wire"
)

// A message for which no receive is posted yet waits here (qp/rnr.go). Segments that arrive after it wait
// with it, in order; meanwhile no credits are granted.
//
// On a connection by number the sender decides when to give up: the receiver waits indefinitely,
// acknowledges nothing from the message on, and sends credits of 0.

const finMax = clock.Second // longest wait for a peer that has sent its fin

// notReady is the state of a connection that waits for a receive.
type notReady struct {
	qp.NotReady // the message is identified by the PSN of its first segment
	queue       []waiting
	timer       *clock.Timer
	reason      waitReason
}

// peerNotReady is the state of a connection by number whose message waits for a receive at the peer. The
// message is identified by our oldest unacknowledged segment.
type peerNotReady struct {
	qp.NotReady
	askAt clock.Time // when to ask the peer whether the message still waits
}

// waitReason is the reason why a message waits.
type waitReason uint8

const (
	receive waitReason = iota
	memory             // access to the memory of its receive is not complete yet
)

// waiting is a packet that was accepted but not delivered.
type waiting struct {
	psn    wire.PSN
	packet kept
}

func (w *notReady) append(psn wire.PSN, packet kept) {
	w.queue = append(w.queue, waiting{psn, packet})
}

// wait makes the message whose first segment is psn wait, or continue to wait.
func (c *Conn) wait(psn wire.PSN) {
	w := &c.rnr
	another := w.Waiting()
	if w.Wait(uint64(psn), c.now()) {
		c.rel.SetCredits(0)
		c.s.Stats.ReceiverNotReady++
		c.FoundNoReceive(nil)
		if another { // and the previous message has got its receive
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

// setReason sets the reason why the next message waits. A peer that may give up because of a missing
// receive is told at once when the reason changes.
func (c *Conn) setReason(reason waitReason) {
	if c.rnr.reason != reason && c.rnr.Waiting() {
		c.acknowledgeSoon()
	}
	c.rnr.reason = reason
}

// creditsToSend returns the credits for a packet's header: 0 tells the peer of a connection by number that
// its message waits for a receive. Otherwise the credits let the peer resend the segment that is kept here.
func (w *notReady) creditsToSend(credits uint32, byNumber bool) uint32 {
	if w.reason == memory && byNumber {
		return max(credits, 1)
	}
	return credits
}

// notePeerNotReady processes what a packet from the peer of a connection by number says about our message
// at ack: credits of 0 mean that it waits for a receive. After it has waited long enough the send fails,
// but only on a packet that still has credits of 0: an earlier packet which said that the message got its
// receive may have been lost.
func (c *Conn) notePeerNotReady(ack wire.PSN, credits uint32) {
	w := &c.peerNotReady
	if ack != c.rel.Acked() {
		return // or the packet was overtaken by another
	}
	if credits > 0 || ack == c.rel.Next() {
		w.End()
		return
	}
	limit := c.MaxSendWait()
	switch {
	case !w.Allows(uint64(ack), limit, c.now()):
		if c.QP.FailNotReady() {
			c.Failed()
		}
	case w.Wait(uint64(ack), c.now()):
		w.askAt = c.now() + limit
	}
}

// askTime returns when to ask the peer whether our message still waits.
func (w *peerNotReady) askTime() clock.Time {
	if !w.Waiting() {
		return clock.Never
	}
	return w.askAt
}

func (c *Conn) askIfPeerNotReady() {
	if c.now() >= c.peerNotReady.askTime() {
		c.peerNotReady.askAt = c.now() + c.rel.Timeout()
		c.sendBare(wire.OpData, wire.FlagAckRequested, nil)
	}
}

// retryNotReady makes Transmit look at the receive queue again.
func (c *Conn) retryNotReady() {
	if c.rnr.Waiting() && c.live() {
		c.later()
	}
}

// deliverWaiting delivers waiting packets whose message has its receive.
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

// deliverKept delivers kept packets in order until one has to wait.
func (c *Conn) deliverKept() {
	w := &c.rnr
	for n := 0; len(w.queue) > 0 && c.live(); n++ {
		first := w.queue[0]
		if n == deliverBudget { // its delivery is postponed, not refused
			c.rnr.Restart(c.now())
			c.setReason(memory)
			c.wait(first.psn)
			c.s.clock.Set(w.timer, clock.Never)
			c.later()
			return
		}
		seg := first.packet.segment()
		if !c.deliver(first.psn, &seg) {
			c.wait(first.psn)
			return
		}
		if len(w.queue) > 0 { // empty if delivery ended the connection, which released the packet
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

// dropWaiting releases the waiting packets when the connection ends.
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
