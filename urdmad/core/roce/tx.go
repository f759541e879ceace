package roce

import (
	"urdma/urdmad/core/qp"
	"urdma/urdmad/core/rc"
	"urdma/wire"
	"urdma/wire/roce"
)

// sendBudget bounds the packets that one connection sends in a turn.
const sendBudget = 64

// Transmit implements qp.Carrier. It sends first an acknowledgement of received requests, before the work
// posted because of them; then answers and requests alternately; then an acknowledgement that had to wait
// for those answers.
func (c *Conn) Transmit() int {
	if !c.live() || c.waits() {
		return 0 // ended, or the peer may not know yet that the connection is established
	}
	if !c.open {
		c.resolve()
		return 0
	}
	if h := c.req.Tick(c.now()); h.Failure != rc.None {
		c.fail(h)
		return 0
	}
	n, full := c.reply()
	for !full && n < sendBudget && c.live() {
		frame := c.port.If.Alloc()
		if frame == nil {
			full = true
			break
		}
		if !c.sendNext(frame) {
			break
		}
		n++
	}
	if !c.live() {
		return n
	}
	if c.notice {
		n += c.sendNotice()
	}
	if full || n == sendBudget {
		c.ready()
	} else {
		more, _ := c.reply()
		n += more
	}
	if c.live() {
		c.s.clock.Set(c.timer, c.req.Deadline())
	}
	return n
}

// sendNext sends one packet if the window allows it.
func (c *Conn) sendNext(frame []byte) bool {
	if c.answered = !c.answered; c.answered {
		return c.sendAnswer(frame) || c.sendRequest(frame)
	}
	return c.sendRequest(frame) || c.live() && c.sendAnswer(frame)
}

// reply sends the acknowledgement or NAK that is due, unless the port is full.
func (c *Conn) reply() (n int, full bool) {
	limit := ^uint64(0)
	if first, ok := c.unwritten.First(); ok {
		limit = first
	}
	psn, aeth, ok := c.resp.Reply(limit)
	if !ok {
		return 0, false
	}
	frame := c.port.If.Alloc()
	if frame == nil {
		c.ready()
		return 0, true
	}
	h := &c.head
	h.Opcode, h.PSN, h.AETH, h.AckReq, h.Solicited = c.transport|roce.Acknowledge, psn, aeth, false, false
	c.send(frame, 0)
	if c.resp.Replied(psn) {
		c.QP.FlushWithEvent(eventOf(aeth.Syndrome))
		c.end(qp.CloseTerminated)
	}
	return 1, false
}

// send completes and sends a packet whose header is in c.head and whose payload of n bytes is in place.
func (c *Conn) send(frame []byte, n int) {
	h, b := &c.head, c.path.Payload(frame)
	pad := roce.Padding(n)
	h.Pad, h.PKey, h.Migrated, h.Dst = uint8(pad), roce.DefaultPKey, h.Opcode != roce.CNP, c.peer
	at := h.Put(b) + n
	clear(b[at : at+pad])
	c.path.Send(frame, at+pad+roce.ICRCLen)
}

// headsLen returns the length of an IP header without options, for an IP version, and a UDP header.
func headsLen(version uint8) int {
	if version == 4 {
		return wire.IPv4Len + wire.UDPLen
	}
	return wire.IPv6Len + wire.UDPLen
}
