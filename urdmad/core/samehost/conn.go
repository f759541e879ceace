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
	connDraining // Disconnect: what was posted is carried out first
	connClosed
)

const (
	drainTime  = clock.Second // longest that Disconnect waits for posted work
	drainCheck = clock.Millisecond
)

// Conn is one end of a connection: a qp.Carrier.
type Conn struct {
	qp.Connection

	s            *Stack
	other        *Conn // the other end; nil once either has ended
	state        connState
	timer        *clock.Timer
	carried      uint64 // messages carried out: the Mark of the last
	answer       answer
	answers      pingpong.Detector // of ours
	delayedUntil clock.Time        // the completion of our last Write waits for an answer; 0: it does not
	rnr          qp.NotReady       // the message is named by its work request's index
	again        *clock.Timer
	unwritten    qp.Unwritten // messages of ours, by Mark: what is acknowledged ends before the first
	refused      refused
	reason       qp.CloseReason
	drainUntil   clock.Time

	stalledUntil clock.Time // work waits at a port that carries nothing, and fails then; 0: none does
}

// Open returns one end of a connection on device dev; Join joins two of them.
func (s *Stack) Open(dev int, local, peer netip.AddrPort) *Conn {
	c := &Conn{s: s, answers: pingpong.Detector{Delay: s.answerDelay}}
	c.Dev, c.Local, c.Peer = dev, local, peer
	c.Takes = qp.ImmediateData | qp.Atomics | qp.XRC
	c.timer = clock.NewTimer(c.tick)
	c.again = clock.NewTimer(c.tryAgain)
	return c
}

// Join makes two ends one connection.
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

// Other is the other end; nil once the connection has ended.
func (c *Conn) Other() *Conn { return c.other }

// Serving is qp.Carrier's: Reads are answered as they are asked.
func (c *Conn) Serving() int { return 0 }

// Faulted is qp.Carrier's: what was in progress is begun again, or completes with an
// error.
func (c *Conn) Faulted() bool { return false }

func (c *Conn) now() clock.Time { return c.s.clock.Now }

// live reports whether both ends exist and data flows.
func (c *Conn) live() bool { return (c.state == connOpen || c.state == connDraining) && c.other != nil }

// Disconnect ends the connection in good order: work already posted is carried
// out (for a second at most) first.
func (c *Conn) Disconnect() {
	if c.state == connOpen && c.QP != nil {
		c.QP.Post() // its bell may not be answered yet; a send queue that is wrong ends the connection
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

// tick is the connection's timer.
func (c *Conn) tick() {
	switch c.state {
	case connOpen:
		c.tickDelayed()
	case connDraining:
		c.drain()
	}
}

// Failed is qp.Carrier's.
func (c *Conn) Failed() {
	if c.state == connOpen || c.state == connDraining {
		c.reason = qp.CloseLocal
		c.finish()
	}
}

// Detach is qp.Carrier's.
func (c *Conn) Detach() {
	c.Failed()
	if c.QP != nil {
		c.QP.Detach()
		c.QP = nil
	}
}

// finish flushes the queue pair, ends the other end and reports the end.
func (c *Conn) finish() {
	if c.state == connClosed {
		return
	}
	c.completeDelayed()
	if c.state == connClosed { // the completion that was delayed did not fit
		return
	}
	c.state = connClosed
	c.answered()
	q := c.QP
	if !c.ByNumber || c.reason != qp.CloseRemote {
		q.Flush(c.reason.Why())
	}
	if o := c.s.observer; o != nil {
		o.End(c)
	}
	if other := c.other; other != nil {
		c.other, other.other = nil, nil
		why := qp.CloseRemote
		if c.reason.Dead() { // nothing tells it more
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

// end ends this end because the other has.
func (c *Conn) end(why qp.CloseReason) {
	if c.state == connOpen || c.state == connDraining {
		c.reason = why
		c.finish()
	}
}
