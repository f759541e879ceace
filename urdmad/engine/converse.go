package engine

import "urdma/verbs/abi"

// On one machine both programs, and we, may share a core. A program that has
// its Write's completion often spins on memory for the answer (ib_write_lat
// does) and never yields; one that still waits for the completion polls, and
// polling yields. So while the peer program answers at once, the completion of
// a Write inside this urdmad waits for the answer, as package reliable lets an
// acknowledgement ride on it (bench/floor has the numbers).

const (
	// conversing is how long, in ns, an acknowledgement or completion waits for
	// an answer to ride on, once answers have come that fast several times in a
	// row. Two daemons and two clients on two cores, ib_write_lat over memif: with
	// 20, 50 and 100 µs about half the runs settled at 20 to 55 µs, because a few
	// slow answers ended the conversation and the spinning began; with 200 µs all
	// six stayed at 6 to 11 µs.
	conversing   = Time(200e3)
	answersInRow = 3
)

// conversation is one end's part in it.
type conversation struct {
	arrived  Time // when the first unanswered message of the peer came; Never: none
	answers  int  // quick ones in a row
	holdTill Time // our completions wait until then; 0: they don't
}

// spoke notes that c sent a message, and lets the peer's held completions go:
// this is what they waited for.
func (c *Conn) spoke() {
	now, v, p := c.e.now, &c.talk, c.peer
	if v.arrived != Never {
		if now-v.arrived <= conversing {
			v.answers = min(v.answers+1, answersInRow)
		} else {
			v.answers = 0
		}
		v.arrived = Never
	}
	if p.talk.arrived == Never {
		p.talk.arrived = now
	}
	p.stopHolding()
}

// holdCompletion reports whether the completion of the message just carried out
// should wait for the peer's answer.
func (c *Conn) holdCompletion(wr *sendWR) bool {
	if wr.op != abi.WRRDMAWrite || c.peer.talk.answers < answersInRow || c.qp.sqNext != c.qp.sqTail {
		return false
	}
	c.talk.holdTill = c.e.now + conversing
	c.e.hasten(c.timer, c.talk.holdTill)
	return true
}

func (c *Conn) stopHolding() {
	if c.talk.holdTill != 0 {
		c.talk.holdTill = 0
		c.e.completeSends(c.qp)
	}
}

// tickHolding: no answer came in time, so the conversation is over.
func (c *Conn) tickHolding() {
	if c.talk.holdTill == 0 || c.peer == nil {
		return
	}
	if c.e.now < c.talk.holdTill {
		c.e.hasten(c.timer, c.talk.holdTill)
		return
	}
	c.peer.talk.answers = 0
	c.stopHolding()
}
