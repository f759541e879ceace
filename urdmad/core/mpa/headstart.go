package mpa

import "urdma/urdmad/core/clock"

// headStartTime is how long a peer has after its request or reply before the first FPDU comes.
// The responder should even wait for the peer's first (RFC 5044 section 7.1.2), but
// the peer's program may wait for ours. One that comes while siw still reads the reply ends
// the connection, and one that comes while it still sends its own is not read before the
// next.
const headStartTime = 50 * clock.Millisecond

// giveHeadStart gives the peer its head start. A peer to peer promised to begin.
func (c *Conn) giveHeadStart() {
	c.headStart = c.now() + headStartTime
	if c.asked.Enhanced && c.asked.PeerToPeer {
		c.headStart = c.now() + c.s.cfg.StartTimeout
	}
	c.s.clock.Set(c.timer, c.headStart)
}

// endHeadStart has the first FPDU go.
func (c *Conn) endHeadStart() {
	if c.headStart != 0 {
		c.headStart = 0
		c.s.table.Ready(c.QP)
	}
}
