package roce

import (
	"net/netip"

	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/netif"
	"urdma/wire/roce"
)

// This file implements congestion notification (annex A17): routers mark packets, the receiver tells the
// sender by a congestion notification packet (CNP), and the sender reduces its rate (rc/window.go,
// pace.go).

// capable is the ECN codepoint ECT(0) (RFC 3168), which allows routers to mark a packet. The other six bits
// of a traffic class belong to the program.
const capable = 2

// noticeEvery is the least interval between CNPs to a queue pair's peer.
const noticeEvery = 50 * clock.Microsecond

// congested handles a marked packet that was accepted.
func (c *Conn) congested(h *roce.Header) {
	if h.Opcode.Traits().Is(roce.Response) { // it answers our Read: we request less
		c.req.Congested()
	}
	if now := c.now(); c.live() && now >= c.noticeAfter {
		c.notice, c.noticeAfter = true, now+noticeEvery
	}
}

// reserved is the length of a CNP's payload.
const reserved = 16

// sendNotice sends the CNP that is due, unless the port is full.
func (c *Conn) sendNotice() (n int) {
	frame := c.port.If.Alloc()
	if frame == nil {
		return 0
	}
	clear(c.path.Payload(frame)[roce.BTHLen:][:reserved])
	h := &c.head
	h.Opcode, h.PSN, h.AckReq, h.Solicited, h.BECN = roce.CNP, 0, false, false, true
	c.send(frame, reserved)
	h.BECN, c.notice = false, false
	c.s.Stats.CNPSent++
	return 1
}

// marked handles a marked packet of type UC or UD: it sends a CNP to the sender.
func (p *Port) marked(d *netif.Datagram) {
	f, uc := p.datagrams.Flow(p.head.Dst)
	if f == nil { // it was sent to a multicast group
		return
	}
	if v, now := f.(*flow), p.s.clock.Now; now >= v.noted {
		v.noted = now + noticeEvery
	} else {
		return
	}
	to := p.head.Src
	if uc != nil {
		to = uc.PeerQPN()
	}
	frame := p.If.Alloc()
	if frame == nil {
		return
	}
	path := p.If.Path(d.Link, p.local(), netip.AddrPortFrom(d.Src.Addr(), roce.Port))
	b := path.Payload(frame)
	h := roce.Header{Opcode: roce.CNP, PKey: roce.DefaultPKey, Dst: to, BECN: true}
	n := h.Put(b)
	clear(b[n : n+reserved])
	path.Send(frame, n+reserved+roce.ICRCLen)
	p.s.Stats.CNPSent++
}

// noticed handles a CNP for a queue pair of type UC or UD.
func (p *Port) noticed(d *netif.Datagram) {
	if !p.sealed(d) {
		p.s.Stats.WrongICRC++
		return
	}
	f, uc := p.datagrams.Flow(p.head.Dst)
	from := d.Src.Addr()
	if f == nil || uc != nil && uc.Peer.Addr() != from || uc == nil && !p.datagrams.SendsTo(from) {
		p.s.Stats.NoQueuePair++
		return // no queue pair takes it
	}
	f.(*flow).noticed(p.s.clock.Now)
	p.s.Stats.CNPHeard++
}
