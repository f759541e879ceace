package mpa

import "urdma/urdmad/core/clock"

// headStart is how long a peer has after its request or reply before the first FPDU comes.
// The responder should even wait for the peer's first (RFC 5044 section 7.1.2), but
// the peer's program may wait for ours. One that comes while siw still reads the reply ends
// the connection, and one that comes while it still sends its own is not read before the
// next.
const headStart = 50 * clock.Millisecond

// keepQuiet gives the peer its head start. A peer to peer promised to begin.
func (c *Conn) keepQuiet() {
	c.quiet = c.now() + headStart
	if c.asked.Enhanced && c.asked.PeerToPeer {
		c.quiet = c.now() + c.s.cfg.StartTimeout
	}
	c.s.clock.Set(c.timer, c.quiet)
}

// speak ends the quiet.
func (c *Conn) speak() {
	if c.quiet != 0 {
		c.quiet = 0
		c.s.table.Ready(c.QP)
	}
}
