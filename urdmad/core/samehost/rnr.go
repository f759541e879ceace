package samehost

import "urdma/urdmad/core/clock"

// A message for which no receive is posted waits at its sender (qp/rnr.go).

// mayWait reports whether the message at Next, which found no receive, may wait for one, and schedules its
// retry.
func (c *Conn) mayWait() bool {
	next, now := uint64(c.QP.SQ.Next()), c.now()
	if !c.rnr.Allows(next, min(c.MaxSendWait(), c.other.MaxReceiveWait()), now) {
		return false
	}
	if c.rnr.Wait(next, now) {
		c.s.Stats.ReceiverNotReady++
		c.FoundNoReceive(c.other.QP)
	}
	c.tryLater()
	return true
}

// pause retries the message at Next soon, because access to the destination's memory is slow.
func (c *Conn) pause() {
	c.received()
	c.rnr.Wait(uint64(c.QP.SQ.Next()), c.now())
	c.tryLater()
}

func (c *Conn) tryLater() { c.s.clock.Set(c.again, c.rnr.NextLook(c.now())) }

// tryAgain is the timer function of a message that waits.
func (c *Conn) tryAgain() {
	if c.stalledUntil != 0 {
		if c.live() && c.now() >= c.stalledUntil {
			c.lost()
		}
		return
	}
	if c.rnr.Waiting() && c.live() {
		c.s.table.Ready(c.QP)
	}
}

// received ends the wait if there is one.
func (c *Conn) received() {
	if c.rnr.Waiting() {
		c.rnr.End()
		c.s.clock.Set(c.again, clock.Never)
	}
}
