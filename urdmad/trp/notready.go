package trp

import (
	"urdma/urdmad/clock"
	"urdma/urdmad/netif"
	"urdma/urdmad/qp"
	"urdma/wire"
)

// A message for which no receive is posted yet waits here, because programs
// written for InfiniBand rely on its RNR retries. rnr_retry_count of
// rdma_connect(3) and rdma_accept(3) says how long: 7 for ever, less for that many
// times the queue pair's min_rnr_timer, or a tenth of a second if it has none, after which the Terminate of RFC 5041 section 7 (no buffer) goes
// out and fails the peer's work request. What arrives behind such a message
// waits with it, in order; no credits are given meanwhile.
//
// On a connection by number it is the sender that gives up, by its queue pair's
// rnr_retry and the receiver's min_rnr_timer: the receiver waits without end and
// acknowledges nothing from the message on.

const (
	rnrFirst = 20 * clock.Microsecond // until the receive queue is looked at again; doubles
	rnrMax   = clock.Millisecond      // up to here
	finMax   = clock.Second           // a peer that has left is not waited for longer
)

// notReady is a connection's wait for a receive.
type notReady struct {
	waiting bool
	since   clock.Time
	pause   clock.Time
	psn     wire.PSN // the message's first segment
	queue   []waiting
	timer   *clock.Timer
	lacks   lack

	heldOff      bool // by number: the peer waits for a receive
	heldOffSince clock.Time
}

// lack is what a message waits for.
type lack uint8

const (
	receive lack = iota
	memory       // its receive's memory takes no more for now
)

// waiting is a packet that was accepted and not delivered.
type waiting struct {
	psn    wire.PSN
	packet netif.Held
}

func (w *notReady) append(psn wire.PSN, packet netif.Held) {
	w.queue = append(w.queue, waiting{psn, packet})
}

// mayWait reports whether a message that found no receive may wait, or wait
// longer, within a limit.
func (w *notReady) mayWait(limit, now clock.Time) bool { return !w.waiting || now-w.since < limit }

// wait begins the wait of the message whose first segment is psn.
func (c *Conn) wait(psn wire.PSN) {
	w := &c.rnr
	if w.waiting {
		return
	}
	w.waiting, w.since, w.pause, w.psn = true, c.now(), rnrFirst, psn
	if w.timer == nil {
		w.timer = clock.NewTimer(c.retryNotReady)
	}
	c.s.clock.Set(w.timer, c.now()+w.pause)
	c.rel.SetCredits(0)
	c.s.Stats.ReceiverNotReady++
}

// lacks notes what the next message waits for. The peer, who may give up for want
// of a receive, hears at once that it is another thing.
func (c *Conn) lacks(what lack) {
	if c.rnr.lacks != what && c.rnr.waiting {
		c.rel.OnAckRequested(c.now())
	}
	c.rnr.lacks = what
}

// stated is the credits that a packet states: 0 tells the peer on a connection by
// number that it waits for a receive. Otherwise it may send the segment again that
// is kept here.
func (w *notReady) stated(credits uint32, byNumber bool) uint32 {
	if w.waiting && w.lacks == memory && byNumber {
		return max(credits, 1)
	}
	return credits
}

// noteHeldOff begins or ends the time for which the peer has had no receive for
// what we sent, as the credits it states show.
func (w *notReady) noteHeldOff(is bool, now clock.Time) {
	if is && !w.heldOff {
		w.heldOffSince = now
	}
	w.heldOff = is
}

// heldOffUntil is when a send of q fails because the peer, who has a
// min_rnr_timer, had no receive for it.
func (w *notReady) heldOffUntil(q *qp.QP, minRNRTimer uint8) clock.Time {
	if !w.heldOff || q == nil || q.SQ.Outstanding() == 0 {
		return clock.Never
	}
	return w.heldOffSince + qp.RNRPatience(&q.Attr, minRNRTimer)
}

// retryNotReady looks at the receive queue again.
func (c *Conn) retryNotReady() {
	w := &c.rnr
	if !w.waiting || !c.live() {
		return
	}
	c.deliverKept()
	switch {
	case !c.live():
	case len(w.queue) == 0:
		c.received()
	case c.end.finPending && c.now()-w.since > finMax:
		c.endByFin()
	default:
		w.pause = min(2*w.pause, rnrMax)
		c.s.clock.Set(w.timer, c.now()+w.pause)
	}
}

// deliverKept delivers packets that were kept, in order, until one has to wait.
func (c *Conn) deliverKept() {
	w := &c.rnr
	for len(w.queue) > 0 && c.live() {
		first := w.queue[0]
		var head [wire.MaxHeaderLen]byte
		seg := c.keptSegment(&first.packet, &head)
		if !c.deliver(first.psn, &seg) {
			c.wait(first.psn)
			return
		}
		if len(w.queue) > 0 { // else delivering it ended the connection, and gave it back
			w.queue = w.queue[1:]
			c.held.release(c.port.If, &first.packet)
		}
	}
}

// received ends the wait.
func (c *Conn) received() {
	c.rnr.waiting, c.rnr.queue = false, nil
	c.s.clock.Set(c.rnr.timer, clock.Never)
	c.rel.SetCredits(c.held.window)
	c.rel.OnAckRequested(c.now()) // opens the peer's window
	c.deliverHeld()
	c.ready()
}

// dropWaiting gives back what waits: the connection is over.
func (c *Conn) dropWaiting() {
	w := &c.rnr
	for i := range w.queue {
		c.held.release(c.port.If, &w.queue[i].packet)
	}
	w.queue, w.waiting = nil, false
	if w.timer != nil {
		c.s.clock.Set(w.timer, clock.Never)
	}
}
