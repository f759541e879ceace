package datagram

import (
	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
	"urdma/wire"
)

// sendBudget bounds the messages, or packets of messages, that one queue pair sends in a turn.
const sendBudget = 64

// sender is common to queue pairs of types UD and UC: a send completes when it has left, and never waits
// for long.
type sender struct {
	qp.Connection

	s    *Stack
	port *Port
	psn  wire.PSN // of the next packet
	sent uint64   // pieces that have left: the Mark of the last
	wait wait
	// starved: a sender of this urdmad waited in vain for a receive of this queue pair. Until one is
	// posted, no sender waits for it again.
	starved bool
	begun   int  // the table's Spent at the start of Transmit
	flow    Flow // the format's state; nil: none
}

func (s *Stack) newSender(dev int) sender {
	p := s.ports[dev]
	return sender{s: s, port: p, flow: p.form.NewFlow()}
}

// outcome is the progress of a work request.
type outcome uint8

const (
	gone    outcome = iota // a piece of it has left, or was dropped as a network may
	later                  // retry: the port is full, or no receive is posted
	revoked                // its memory was deregistered
	begun                  // part of it was done; the rest follows in the next turn
)

// transmit is Transmit for both types. send sends a piece of the work request at an index, and calls moved.
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

// moved records that n more bytes of the work request at Next have left, unless an arrival here has overrun
// one of our completion queues.
func (c *sender) moved(n uint32) {
	if !c.live() {
		return
	}
	c.sent++
	c.QP.SQ.Sent(n, c.sent, false)
}

// live reports whether messages are sent and received.
func (c *sender) live() bool { return c.QP != nil && c.QP.State() != abi.QPSErr }

// A sender waits for a moment if its receiver on this machine has used up its receives: between two
// programs of one machine, messages are lost because a program gets no processor time rather than because
// of the network.
const (
	// patience is how long a sender waits for a receive, and lookAgain how often it looks. After a wait in
	// vain, no sender waits for that receiver until it has posted a receive.
	patience  = 100 * clock.Millisecond
	lookAgain = 50 * clock.Microsecond
)

// wait is a sender's wait for a receive.
type wait struct {
	timer *clock.Timer
	until clock.Time // 0: it does not wait
}

// mayWait makes the sender wait for a receive of to, unless it has waited long enough.
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

// later schedules a retry of the queue pair.
func (c *sender) later() { c.s.clock.Set(c.wait.timer, c.s.clock.Now+lookAgain) }

// resume is the timer function of a sender that waits.
func (c *sender) resume() {
	if c.live() {
		c.s.table.Ready(c.QP)
	}
}

// stop ends a wait, and prevents further ones.
func (c *sender) stop() {
	c.s.clock.Set(c.wait.timer, clock.Never)
	c.wait.until = 0
}

// Faulted implements qp.Carrier.
func (c *sender) Faulted() bool { return false }

// Serving implements qp.Carrier: there are no Reads.
func (c *sender) Serving() int { return 0 }
