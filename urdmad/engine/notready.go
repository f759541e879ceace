package engine

import (
	"urdma/dpdk/port"
	"urdma/urdmad/clock"
	"urdma/wire"
)

// A message for which no receive is posted yet waits here, because programs
// written for InfiniBand rely on its RNR retries. rnr_retry_count of
// rdma_connect(3) and rdma_accept(3) says how long: 7 for ever, less for a tenth
// of a second, after which the Terminate of RFC 5041 section 7 (no buffer) goes
// out and fails the peer's work request. What arrives behind such a message
// waits with it, in order; no credits are given meanwhile.

const (
	rnrForever  = 7            // rnr_retry_count
	rnrPatience = Time(100e6)  // for less than that
	rnrFirst    = Time(20e3)   // ns until the receive queue is looked at again; doubles
	rnrLongest  = Time(1e6)    // up to here
	finPatience = Time(1000e6) // a peer that has left is not waited for longer
)

// notReady is a connection's wait for a receive. On a local connection it is
// the sender's, and nothing is queued.
type notReady struct {
	waiting bool
	since   Time
	pause   Time
	psn     wire.PSN // the message's first segment
	queue   []stashed
	timer   *clock.Timer
}

// stashed is a segment that was accepted and not delivered.
type stashed struct {
	psn    wire.PSN
	packet port.Packet
}

// mayWait reports whether the segment psn, whose message found no receive, may
// wait (longer), and begins the wait.
func (c *Conn) mayWait(psn wire.PSN, retries uint8) bool {
	w := &c.rnr
	if !w.waiting {
		w.waiting, w.since, w.pause, w.psn = true, c.e.now, rnrFirst, psn
		if w.timer == nil {
			w.timer = clock.NewTimer(c.retryNotReady)
		}
		c.e.SetTimer(w.timer, c.e.now+w.pause)
		if c.port != nil {
			c.rel.SetCredits(0)
		}
		c.e.Stats.ReceiverNotReady++
		return true
	}
	return retries >= rnrForever || c.e.now-w.since < rnrPatience
}

// stash keeps the packet of an accepted segment until its turn.
func (c *Conn) stash(psn wire.PSN, p *port.Packet) {
	c.rnr.queue = append(c.rnr.queue, stashed{psn, *p})
	c.e.note = "held: no receive is posted"
	if err := c.port.queue.Retain(&c.rnr.queue[len(c.rnr.queue)-1].packet); err != nil {
		c.e.Stats.RetainFailed++
	}
}

// retryNotReady looks at the receive queue again.
func (c *Conn) retryNotReady() {
	w := &c.rnr
	if !w.waiting || c.state != connOpen && c.state != connDraining {
		return
	}
	if c.port == nil {
		w.pause = min(2*w.pause, rnrLongest)
		c.e.SetTimer(w.timer, c.e.now+w.pause)
		c.e.runq.add(c.qp)
		return
	}
	for len(w.queue) > 0 && (c.state == connOpen || c.state == connDraining) {
		s := w.queue[0]
		if !c.deliverRetained(s.psn, &s.packet) {
			break
		}
		if len(w.queue) > 0 { // else delivering it ended the connection, and freed it
			w.queue = w.queue[1:]
			c.port.queue.Free([]port.Packet{s.packet})
		}
	}
	switch {
	case c.state != connOpen && c.state != connDraining:
	case len(w.queue) == 0:
		c.ready()
	case c.finPending && c.e.now-w.since > finPatience:
		c.endByFin()
	default:
		w.pause = min(2*w.pause, rnrLongest)
		c.e.SetTimer(w.timer, c.e.now+w.pause)
	}
}

// ready ends the wait.
func (c *Conn) ready() {
	c.rnr.waiting, c.rnr.queue = false, nil
	c.e.SetTimer(c.rnr.timer, Never)
	if c.port == nil {
		return
	}
	c.rel.SetCredits(len(c.held))
	c.rel.OnAckRequested(c.e.now) // opens the peer's window
	c.deliverHeld()
	c.e.runq.add(c.qp)
}

// dropStashed forgets what waits: the connection is over.
func (c *Conn) dropStashed() {
	for i := range c.rnr.queue {
		c.port.queue.Free([]port.Packet{c.rnr.queue[i].packet})
	}
	c.rnr.queue, c.rnr.waiting = nil, false
	if c.rnr.timer != nil {
		c.e.SetTimer(c.rnr.timer, Never)
	}
}
