package mpa

import (
	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/pingpong"
)

// A Write is done once the kernel has it, long before the peer answers. Where the peer answers
// at once, a single Write completes along with the answer (package pingpong). A message that takes
// a receive is answered by what the program polls for anyway.

// delayed is the completion of a Write that waits for the peer's answer.
type delayed struct {
	mark    uint64 // of the Write; 0: none waits
	timer   *clock.Timer
	answers pingpong.Detector // of the peer's
}

// carried says that the kernel has all segments up to mark.
func (c *Conn) carried(mark uint64) {
	d := &c.delayed
	d.answers.Asked(c.now())
	waiting := d.mark != 0
	d.mark = mark
	if !d.answers.On() || !c.single() {
		c.completeDelayed()
	} else if !waiting {
		c.s.clock.Set(d.timer, c.now()+d.answers.Delay)
	}
}

// single reports whether a Write is all that is under way.
func (c *Conn) single() bool {
	sq := &c.QP.SQ
	if c.state != connOpen || sq.Outstanding() != 1 || c.stream.Serving() > 0 {
		return false
	}
	wr := sq.At(sq.Head())
	return !wr.IsRead() && !wr.Op.TakesReceive
}

// answered: something has come from the peer.
func (c *Conn) answered() {
	d := &c.delayed
	d.answers.Answered(c.now())
	if d.mark != 0 {
		d.answers.Useful()
		c.completeDelayed()
	}
}

// completeDelayed completes the Write that waits.
func (c *Conn) completeDelayed() {
	d := &c.delayed
	if d.mark == 0 {
		return
	}
	mark := d.mark
	d.mark = 0
	c.s.clock.Set(d.timer, clock.Never)
	c.stream.Acked(mark)
}

// unanswered is the timer: the answer takes longer.
func (c *Conn) unanswered() {
	c.delayed.answers.Needless()
	c.completeDelayed()
}
