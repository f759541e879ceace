package mpa

import "urdma/urdmad/core/clock"

// A message for which no receive is posted waits: nothing is read from the socket
// meanwhile, so that TCP holds the peer off. Package qp has the rule.

// endTime is how long a message waits for its receive when the peer has ended its stream
// behind it. Over TCP sends complete before the peer's program has them, so a peer that
// disconnects in good order may be ahead of ours by all that the sockets hold.
const endTime = clock.Second

// mayWait has the message that found no receive wait, if it may, or wait longer. One that
// the peer does not wait for any more ends the connection.
func (c *Conn) mayWait() bool {
	if !c.rnr.Allows(c.placed, c.ReceivePatience(), c.now()) {
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

// pause has what came tried again soon: the memory it goes to takes no more yet.
func (c *Conn) pause() {
	c.rnr.Wait(c.placed, c.now())
	c.rnr.Restart(c.now())
	c.tryLater()
}

func (c *Conn) tryLater() {
	c.s.clock.Set(c.again, c.rnr.NextLook(c.now()))
	c.watch()
}

// tryAgain is the timer of what waits.
func (c *Conn) tryAgain() {
	if !c.live() || !c.rnr.Waiting() {
		return
	}
	c.next() // waits again, or ends the wait
	if c.live() && !c.rnr.Waiting() {
		c.consume()
		if c.live() {
			c.idle()
			c.watch()
		}
	}
}
