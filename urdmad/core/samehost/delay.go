package samehost

import "urdma/urdmad/core/qp"

// A Write is done once it is copied. Where the peer answers at once, it completes along with the
// answer (package pingpong). answers of an end is about its own program's answers.

// answering completes the peer's Write that waits before a message of c's, which may be the
// answer: the peer has room for its next message then.
func (c *Conn) answering() {
	if o := c.other; o.delayedUntil != 0 {
		c.answers.Useful()
		o.completeDelayed()
	}
}

// said notes that c sent a message.
func (c *Conn) said() {
	c.answers.Answered(c.now())
	c.other.answers.Asked(c.now())
}

// delayCompletion reports whether the completion of the message just carried out waits for the
// peer's answer.
func (c *Conn) delayCompletion(wr *qp.SendWR) bool {
	sq := &c.QP.SQ
	if wr.IsRead() || wr.Op.TakesReceive || !c.other.answers.On() || sq.Next() != sq.Tail() {
		return false
	}
	c.delayedUntil = c.now() + c.answers.Delay
	c.s.clock.Hasten(c.timer, c.delayedUntil)
	return true
}

// completeDelayed completes the Write that waits.
func (c *Conn) completeDelayed() {
	if c.delayedUntil != 0 {
		c.delayedUntil = 0
		c.acknowledge()
	}
}

// tickDelayed ends a wait that lasts too long.
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
