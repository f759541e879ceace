package mpa

import "urdma/urdmad/core/clock"

// A Write is done once the kernel has it, long before the peer answers. A program that has
// its completion may wait for the answer by looking at memory, without a call of ours; where
// it shares a core with the worker, the answer is not even read until the kernel takes the
// core away from it. So in a conversation, where answers come soon, a single Write completes
// along with its answer: until then the program polls, and gives way. Package reliable delays
// acknowledgements for the same reason, and samehost completions. What takes a receive is
// answered by what the program polls for.
const (
	soonToHold  = 4
	lateToLetGo = 2
)

// held is the completion of a Write that waits for the peer's answer.
type held struct {
	mark   uint64 // of the Write; 0: none waits
	timer  *clock.Timer
	sentAt clock.Time // of the oldest send since the last answer; 0: none
	soon   int        // answers in a row that came within AnswerDelay; soonToHold: it is a conversation
	late   int        // completions in a row that did not wait long enough
}

// carried says that the kernel has all segments up to mark.
func (c *Conn) carried(mark uint64) {
	h := &c.held
	if h.sentAt == 0 {
		h.sentAt = c.now()
	}
	waiting := h.mark != 0
	h.mark = mark
	if h.soon < soonToHold || !c.single() {
		c.letGo()
	} else if !waiting {
		c.s.clock.Set(h.timer, c.now()+c.s.cfg.AnswerDelay)
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
	h := &c.held
	switch soon := c.now()-h.sentAt <= c.s.cfg.AnswerDelay; {
	case h.sentAt == 0:
		return
	case h.mark != 0:
		h.late = 0
	case h.soon < soonToHold && soon:
		h.soon++
	case h.soon < soonToHold:
		h.soon = 0
	}
	h.sentAt = 0
	c.letGo()
}

// letGo completes the Write that waits.
func (c *Conn) letGo() {
	h := &c.held
	if h.mark == 0 {
		return
	}
	mark := h.mark
	h.mark = 0
	c.s.clock.Set(h.timer, clock.Never)
	c.stream.Acked(mark)
}

// unanswered is the timer: the answer takes longer.
func (c *Conn) unanswered() {
	h := &c.held
	if h.late++; h.late >= lateToLetGo {
		h.soon, h.late = 0, 0
	}
	c.letGo()
}
