package samehost

import (
	"net/netip"

	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/pingpong"
	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
)

type connState uint8

const (
	connOpening connState = iota
	connOpen
	connDraining // Disconnect was called: posted work is executed first
	connClosed
)

const (
	drainTime  = clock.Second // longest time that Disconnect waits for posted work
	drainCheck = clock.Millisecond
)

// Conn is one end of a connection: a qp.Carrier.
type Conn struct {
	qp.Connection

	s            *Stack
	other        *Conn // the other end; nil once either has ended
	state        connState
	timer        *clock.Timer
	carried      uint64 // messages executed: the Mark of the last
	answer       answer
	answers      pingpong.Detector // of our program's answers
	delayedUntil clock.Time        // until when the completion of our last Write is delayed; 0: it is not
	rnr          qp.NotReady       // the message is identified by its work request's index
	again        *clock.Timer
	unwritten    qp.Unwritten // writes to memory in progress, by Mark of our message; completions end before the first
	refused      refused
	reason       qp.CloseReason
	drainUntil   clock.Time

	stalledUntil clock.Time // when work at a port whose link is down fails; 0: none waits
}

// Open returns one end of a connection on device dev; Join connects two ends.
func (s *Stack) Open(dev int, local, peer netip.AddrPort) *Conn {
	c := &Conn{s: s, answers: pingpong.Detector{Delay: s.answerDelay}}
	c.Dev, c.Local, c.Peer = dev, local, peer
	c.PeerAccepts = qp.ImmediateData | qp.Atomics | qp.XRC
	c.timer = clock.NewTimer(c.tick)
	c.again = clock.NewTimer(c.tryAgain)
	return c
}

// Join connects two ends to one connection.
func Join(a, b *Conn) { a.other, b.other = b, a }

// Start opens this end for data and moves the queue pair to RTS.
func (c *Conn) Start(q *qp.QP) {
	c.QP, c.state = q, connOpen
	if o := c.other; o != nil && o.QP != nil {
		c.unwritten.Init(o.QP)
		o.unwritten.Init(q)
	}
	q.Attach(c)
}

// Other returns the other end; nil once the connection has ended.
func (c *Conn) Other() *Conn { return c.other }

// Serving implements qp.Carrier: Reads are answered at once.
func (c *Conn) Serving() int { return 0 }

// Faulted implements qp.Carrier: the work request in progress starts again, or completes with an error.
func (c *Conn) Faulted() bool { return false }

func (c *Conn) now() clock.Time { return c.s.clock.Now }

// live reports whether both ends exist and data flows.
func (c *Conn) live() bool { return (c.state == connOpen || c.state == connDraining) && c.other != nil }

// Disconnect ends the connection gracefully: it executes the work already posted first (for at most a
// second).
func (c *Conn) Disconnect() {
	if c.state == connOpen && c.QP != nil {
		c.QP.Post() // the doorbell may not have been processed; an invalid send queue ends the connection
	}
	if c.state != connOpen {
		return
	}
	c.reason = qp.CloseLocal
	c.state = connDraining
	c.drainUntil = c.now() + drainTime
	c.completeDelayed()
	c.drain()
}

func (c *Conn) drain() {
	switch {
	case c.state != connDraining:
	case c.now() >= c.drainUntil || c.QP == nil || c.QP.State() != abi.QPSRTS || c.QP.SQ.Empty():
		c.finish()
	default:
		c.s.table.Ready(c.QP)
		c.s.clock.Set(c.timer, min(c.drainUntil, c.now()+drainCheck))
	}
}

// tick is the connection's timer function.
func (c *Conn) tick() {
	switch c.state {
	case connOpen:
		c.tickDelayed()
	case connDraining:
		c.drain()
	}
}

// Failed implements qp.Carrier.
func (c *Conn) Failed() {
	if c.state == connOpen || c.state == connDraining {
		c.reason = qp.CloseLocal
		c.finish()
	}
}

// Detach implements qp.Carrier.
func (c *Conn) Detach() {
	c.Failed()
	if c.QP != nil {
		c.QP.Detach()
		c.QP = nil
	}
}

// finish flushes the queue pair, ends the other end, and reports the end.
func (c *Conn) finish() {
	if c.state == connClosed {
		return
	}
	c.completeDelayed()
	if c.state == connClosed { // the delayed completion overran its completion queue
		return
	}
	c.state = connClosed
	c.answered()
	q := c.QP
	if !c.ByNumber || c.reason != qp.CloseRemote {
		q.Flush(c.reason.Why())
	}
	if other := c.other; other != nil {
		c.other, other.other = nil, nil
		why := qp.CloseRemote
		if c.reason.Dead() { // the other end learns the reason no other way
			why = c.reason
		}
		other.end(why)
	}
	c.s.clock.Set(c.timer, clock.Never)
	c.s.clock.Set(c.again, clock.Never)
	if c.ByNumber && c.reason == qp.CloseRemote && c.s.table.PeerLeft(q) {
		c.QP = nil
	}
	c.s.manager.Closed(&c.Connection, c.reason)
}

// end ends this end because the other has ended.
func (c *Conn) end(why qp.CloseReason) {
	if c.state == connOpen || c.state == connDraining {
		c.reason = why
		c.finish()
	}
}
