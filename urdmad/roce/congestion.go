package roce

import (
	"urdma/urdmad/clock"
	"urdma/wire/roce"
)

// This file is about congestion as routers tell of it (annex A17.9): they mark packets, who
// gets them says so to their sender by a packet of its own (CNP), and that one sends less
// (rc/window.go).

// capable says that a packet's marks are looked at (RFC 3168, ECT(0)); the other bits of a
// traffic class are the program's.
const capable = 2

// noticeEvery is how often a peer is told at most.
const noticeEvery = 50 * clock.Microsecond

// congested: a packet that counts came with a mark.
func (c *Conn) congested(h *roce.Header) {
	if h.Opcode.Traits().Is(roce.Response) { // the answer to a Read of ours: we ask for less
		c.req.Congested()
	}
	if now := c.now(); c.live() && now >= c.quiet {
		c.notice, c.quiet = true, now+noticeEvery
	}
}

// sendNotice sends the CNP that is due, unless the port is full.
func (c *Conn) sendNotice() (n int) {
	frame := c.port.If.Alloc()
	if frame == nil {
		return 0
	}
	const reserved = 16 // bytes
	clear(c.path.Payload(frame)[roce.BTHLen:][:reserved])
	h := &c.head
	h.Opcode, h.PSN, h.AckReq, h.Solicited, h.BECN = roce.CNP, 0, false, false, true
	c.send(frame, reserved)
	h.BECN, c.notice = false, false
	c.s.Stats.CNPSent++
	return 1
}
