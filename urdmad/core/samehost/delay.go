package samehost

import "urdma/urdmad/core/qp"

// A Write is done once it is copied. If the peer answers at once, the Write completes together with the
// answer (package pingpong). Each end's answers field measures the answers of its own program.

// answering completes the peer's delayed Write before c sends a message, which may be the answer, so that
// the peer has room for its next message then.
func (c *Conn) answering() {
	if o := c.other; o.delayedUntil != 0 {
		c.answers.Useful()
		o.completeDelayed()
	}
}

// said records that c sent a message.
func (c *Conn) said() {
	c.answers.Answered(c.now())
	c.other.answers.Asked(c.now())
}

// delayCompletion reports whether the completion of the message just executed waits for the peer's answer.
func (c *Conn) delayCompletion(wr *qp.SendWR) bool {
	sq := &c.QP.SQ
	if wr.IsRead() || wr.Op.TakesReceive || !c.other.answers.On() || sq.Next() != sq.Tail() {
		return false
	}
	c.delayedUntil = c.now() + c.answers.Delay
	c.s.clock.Hasten(c.timer, c.delayedUntil)
	return true
}

// completeDelayed completes the Write whose completion is delayed.
func (c *Conn) completeDelayed() {
	if c.delayedUntil != 0 {
		c.delayedUntil = 0
		c.acknowledge()
	}
}

// tickDelayed ends a delay that lasts too long.
func (c *Conn) tickDelayed() {
	if c.delayedUntil == 0 || c.other == nil {
		return
	}
	if c.now() < c.delayedUntil {
		c.s.clock.Hasten(c.timer, c.delayedUntil)
		return
	}
	c.other.answers.Needless()
	c.completeDelayed()
}
