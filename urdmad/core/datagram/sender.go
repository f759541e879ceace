package datagram

import (
	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
	"urdma/wire"
)

// sendBudget bounds the messages, or packets of messages, that one queue pair
// sends in a turn.
const sendBudget = 64

// sender is what queue pairs of types UD and UC have in common: a send is done
// when it has left, and all that it ever waits for is a moment.
type sender struct {
	qp.Connection

	s    *Stack
	port *Port
	psn  wire.PSN // of the next packet
	sent uint64   // pieces that have left: the Mark of the last
	wait wait
	// starved: somebody here waited for a receive of this queue pair, and none was
	// posted. Until one is, nobody waits for it again.
	starved bool
	begun   int  // the table's Spent when Transmit began
	flow    Flow // the form's; nil: it has none
}

func (s *Stack) newSender(dev int) sender {
	p := s.ports[dev]
	return sender{s: s, port: p, flow: p.form.NewFlow()}
}

// outcome is what became of a work request.
type outcome uint8

const (
	gone    outcome = iota // a piece of it has left, or was dropped as a network may
	later                  // must be tried again: the port is full, or a receive is waited for
	revoked                // its memory was deregistered
	begun                  // part of it was done, the rest follows in the next turn
)

// transmit is Transmit of either type. send lets a piece of the work request at
// an index leave, and calls moved.
func (c *sender) transmit(send func(i uint32, wr *qp.SendWR) outcome, failed func()) (n int) {
	q := c.QP
	c.begun = c.s.table.Spent()
	for n < sendBudget && c.live() && q.Ready() {
		if c.flow != nil {
			if until, ok := c.flow.Holds(c.s.clock.Now); ok {
				q.Acknowledge(c.sent)
				c.s.clock.Set(c.wait.timer, until)
				return n
			}
		}
		i := q.SQ.Next()
		switch send(i, q.SQ.At(i)) {
		case revoked:
			q.Acknowledge(c.sent)
			if c.live() {
				q.FailRevoked(i)
				failed()
			}
			return n
		case later:
			q.Acknowledge(c.sent)
			return n
		case begun:
			q.Acknowledge(c.sent)
			return n + 1
		}
		n++
	}
	if c.live() {
		q.Acknowledge(c.sent)
	}
	if n == sendBudget && c.live() {
		c.s.table.Ready(q)
	}
	return n
}

// moved notes that n bytes more of the work request at Next have left, unless what
// arrived here has overrun a completion queue of ours.
func (c *sender) moved(n uint32) {
	if !c.live() {
		return
	}
	c.sent++
	c.QP.SQ.Sent(n, c.sent, false)
}

// live reports whether messages come and go.
func (c *sender) live() bool { return c.QP != nil && c.QP.State() != abi.QPSErr }

// A sender whose receiver on this machine has used up what it posted waits a
// moment: what two programs of one machine say to each other is lost for want of a
// processor sooner than for want of a wire.
const (
	// patience is how long a sender waits for a receive, and lookAgain how often it
	// looks. A receiver that lets it pass is not waited for again before it has
	// posted one.
	patience  = 100 * clock.Millisecond
	lookAgain = 50 * clock.Microsecond
)

// wait is a sender's wait for a receive.
type wait struct {
	timer *clock.Timer
	until clock.Time // 0: it doesn't wait
}

// mayWait has the sender wait for a receive of to's, unless it has waited long
// enough.
func (c *sender) mayWait(to *sender) bool {
	now := c.s.clock.Now
	switch {
	case to.starved:
		return false
	case c.wait.until == 0:
		c.wait.until = now + patience
	case now >= c.wait.until:
		c.wait.until, to.starved = 0, true
		return false
	}
	c.later()
	return true
}

// later has the queue pair tried again soon.
func (c *sender) later() { c.s.clock.Set(c.wait.timer, c.s.clock.Now+lookAgain) }

// resume is the timer of a sender that waits.
func (c *sender) resume() {
	if c.live() {
		c.s.table.Ready(c.QP)
	}
}

// stop ends a wait, and further ones.
func (c *sender) stop() {
	c.s.clock.Set(c.wait.timer, clock.Never)
	c.wait.until = 0
}

// Faulted is qp.Carrier's.
func (c *sender) Faulted() bool { return false }

// Serving is qp.Carrier's: there are no Reads.
func (c *sender) Serving() int { return 0 }
