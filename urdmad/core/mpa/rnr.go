package mpa

import "urdma/urdmad/core/clock"

// A message for which no receive is posted waits: meanwhile nothing is read from the socket, so that TCP's
// flow control stops the peer. Package qp has the rules.

// endTime is how long a message waits for its receive after the peer has ended its stream. Over TCP, sends
// complete before the peer's program has them, so a peer that disconnects gracefully may be ahead of our
// program by everything in the sockets' buffers.
const endTime = clock.Second

// mayWait makes the message that found no receive wait, or continue to wait, if it may. If the peer has
// stopped waiting for it, the connection ends.
func (c *Conn) mayWait() bool {
	if !c.rnr.Allows(c.placed, c.MaxReceiveWait(), c.now()) {
		return false
	}
	if c.rnr.Wait(c.placed, c.now()) {
		c.s.Stats.ReceiverNotReady++
		c.FoundNoReceive(nil)
	}
	if c.endAt != 0 && c.now()-max(c.endAt, c.rnr.Since()) >= endTime {
		c.ended()
		return true
	}
	c.tryLater()
	return true
}

// pause retries delivery soon: the destination's memory takes no more data yet.
func (c *Conn) pause() {
	c.rnr.Wait(c.placed, c.now())
	c.rnr.Restart(c.now())
	c.tryLater()
}

func (c *Conn) tryLater() {
	c.s.clock.Set(c.again, c.rnr.NextLook(c.now()))
	c.watch()
}

// tryAgain is the timer function of a message that waits.
func (c *Conn) tryAgain() {
	if !c.live() || !c.rnr.Waiting() {
		return
	}
	c.next() // delivers the message, or waits again
	if c.live() && !c.rnr.Waiting() {
		c.consume()
		if c.live() {
			c.idle()
			c.watch()
		}
	}
}
