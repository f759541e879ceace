package mpa

// A message for which no receive is posted waits: nothing is read from the socket
// meanwhile, so that TCP holds the peer off. Package qp has the rule.

// mayWait has the message that found no receive wait, if it may, or wait longer.
func (c *Conn) mayWait() bool {
	if !c.rnr.Allows(c.placed, c.ReceivePatience(), c.now()) {
		return false
	}
	if c.rnr.Wait(c.placed, c.now()) {
		c.s.Stats.ReceiverNotReady++
		c.TraceNotReady(nil)
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
