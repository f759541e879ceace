package mpa

import (
	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/pingpong"
)

// A Write completes once the kernel has its data, long before the peer answers. If the peer answers at
// once, a single Write completes together with the answer (package pingpong). Messages that take a receive
// complete at once: the program polls for the answer anyway.

// delayed is the delayed completion of a Write.
type delayed struct {
	mark    uint64 // of the Write; 0: no completion is delayed
	timer   *clock.Timer
	answers pingpong.Detector // of the peer's answers
}

// carried records that the kernel has all segments up to mark.
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

// single reports whether one Write is all that is outstanding.
func (c *Conn) single() bool {
	sq := &c.QP.SQ
	if c.state != connOpen || sq.Outstanding() != 1 || c.stream.Serving() > 0 {
		return false
	}
	wr := sq.At(sq.Head())
	return !wr.IsRead() && !wr.Op.TakesReceive
}

// answered records that data from the peer have arrived.
func (c *Conn) answered() {
	d := &c.delayed
	d.answers.Answered(c.now())
	if d.mark != 0 {
		d.answers.Useful()
		c.completeDelayed()
	}
}

// completeDelayed completes the Write whose completion is delayed.
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

// unanswered is the timer function: the answer takes too long.
func (c *Conn) unanswered() {
	c.delayed.answers.Needless()
	c.completeDelayed()
}
