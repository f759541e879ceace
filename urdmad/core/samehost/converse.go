package samehost

import (
	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/qp"
)

// On one machine both programs, and we, may share a core. A program that has
// its Write's completion often spins on memory for the answer (ib_write_lat
// does) and never yields; one that still waits for the completion polls, and
// polling yields. So while the peer program answers at once, the completion of
// a Write inside this urdmad waits for the answer, as package reliable lets an
// acknowledgement ride on it (bench/floor has the numbers).

// answersInRow is how many quick answers make a conversation.
const answersInRow = 3

// conversation is one end's part in it.
type conversation struct {
	arrived   clock.Time // when the first unanswered message of the peer came; Never: none
	answers   int        // quick ones in a row
	holdUntil clock.Time // our completions wait until then; 0: they don't
}

// speaks lets the peer's held completion go before a message of c's, which may be what it
// waits for: who has the answer has room for the next message.
func (c *Conn) speaks() { c.other.stopHolding() }

// spoke notes that c sent a message.
func (c *Conn) spoke() {
	v, o := &c.talk, c.other
	if v.arrived != clock.Never {
		if c.now()-v.arrived <= c.s.answerDelay {
			v.answers = min(v.answers+1, answersInRow)
		} else {
			v.answers = 0
		}
		v.arrived = clock.Never
	}
	if o.talk.arrived == clock.Never {
		o.talk.arrived = c.now()
	}
}

// holdCompletion reports whether the completion of the message just carried out
// should wait for the peer's answer.
func (c *Conn) holdCompletion(wr *qp.SendWR) bool {
	sq := &c.QP.SQ
	if wr.IsRead() || wr.Op.TakesReceive || c.other.talk.answers < answersInRow || sq.Next() != sq.Tail() {
		return false
	}
	c.talk.holdUntil = c.now() + c.s.answerDelay
	c.s.clock.Hasten(c.timer, c.talk.holdUntil)
	return true
}

func (c *Conn) stopHolding() {
	if c.talk.holdUntil != 0 {
		c.talk.holdUntil = 0
		c.acknowledge()
	}
}

// tickHolding: no answer came in time, so the conversation is over.
func (c *Conn) tickHolding() {
	if c.talk.holdUntil == 0 || c.other == nil {
		return
	}
	if c.now() < c.talk.holdUntil {
		c.s.clock.Hasten(c.timer, c.talk.holdUntil)
		return
	}
	c.other.talk.answers = 0
	c.stopHolding()
}
