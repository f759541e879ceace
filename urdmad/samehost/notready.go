package samehost

import (
	"urdma/urdmad/clock"
	"urdma/urdmad/qp"
)

// A message for which no receive is posted yet waits at its sender, because
// programs written for InfiniBand rely on RNR retries: as long as the receiving
// side's rnr_retry_count says (rdma_connect(3)), 7 for ever, else that many times
// its min_rnr_timer, or a tenth of a second if it has none. On a connection by number the sender's rnr_retry says it, with the
// receiver's min_rnr_timer.

const (
	rnrFirst = 20 * clock.Microsecond // until the receive queue is looked at again; doubles
	rnrMax   = clock.Millisecond      // up to here
)

type notReady struct {
	waiting bool
	since   clock.Time
	pause   clock.Time
	timer   *clock.Timer
}

// limit is how long the message at Next may wait.
func (c *Conn) limit() clock.Time {
	switch {
	case c.ByNumber:
		return qp.RNRPatience(&c.QP.Attr, c.PeerRNR)
	}
	return qp.ReceiverPatience(c.other.QP, c.other.RNRRetry)
}

// mayWait reports whether the message at Next may wait for a receive, or wait
// longer, and begins the wait.
func (c *Conn) mayWait() bool {
	w := &c.rnr
	if !w.waiting {
		w.waiting, w.since, w.pause = true, c.now(), rnrFirst
		c.s.clock.Set(w.timer, c.now()+w.pause)
		c.s.Stats.ReceiverNotReady++
		return true
	}
	return c.now()-w.since < c.limit()
}

// pause has the message at Next tried again soon: the memory it goes to is slow.
func (c *Conn) pause() {
	w := &c.rnr
	w.waiting, w.since, w.pause = true, c.now(), rnrFirst
	c.s.clock.Set(w.timer, c.now()+w.pause)
}

// retryNotReady has the message tried again.
func (c *Conn) retryNotReady() {
	w := &c.rnr
	if !w.waiting || !c.live() {
		return
	}
	w.pause = min(2*w.pause, rnrMax)
	c.s.clock.Set(w.timer, c.now()+w.pause)
	c.s.table.Ready(c.QP)
}

// received ends the wait, if there is one.
func (c *Conn) received() {
	if c.rnr.waiting {
		c.rnr.waiting = false
		c.s.clock.Set(c.rnr.timer, clock.Never)
	}
}
