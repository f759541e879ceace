package mpa

import "urdma/urdmad/core/clock"

// headStartTime is the pause after the peer's request or reply before we send the first FPDU. The responder
// should even wait for the peer's first FPDU (RFC 5044 section 7.1.2), but the peer's program may wait for
// ours. An FPDU that arrives while siw still reads the reply ends the connection; one that arrives while
// siw still sends its own reply is not read until the next one arrives.
const headStartTime = 50 * clock.Millisecond

// giveHeadStart starts the pause. There is none if the peer has promised to send first.
func (c *Conn) giveHeadStart() {
	c.headStart = c.now() + headStartTime
	if c.asked.Enhanced && c.asked.PeerToPeer {
		c.headStart = c.now() + c.s.cfg.StartTimeout
	}
	c.s.clock.Set(c.timer, c.headStart)
}

// endHeadStart allows the first FPDU.
func (c *Conn) endHeadStart() {
	if c.headStart != 0 {
		c.headStart = 0
		c.s.table.Ready(c.QP)
	}
}
