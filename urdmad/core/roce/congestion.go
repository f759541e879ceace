package roce

import (
	"net/netip"

	"urdma/urdmad/core/datagram"
	"urdma/urdmad/core/netif"
	"urdma/wire/roce"
)

// This file is about congestion as routers tell of it (annex A17.9): they mark packets, who
// gets them says so to their sender by a packet of its own (CNP), and that one sends less
// (rc/window.go, datagram/pace.go).

// congested: a packet that counts came with a mark.
func (c *Conn) congested(h *roce.Header) {
	if h.Opcode.Traits().Is(roce.Response) { // the answer to a Read of ours: we ask for less
		c.req.Congested()
	}
	if now := c.now(); c.live() && now >= c.quiet {
		c.notice, c.quiet = true, now+datagram.NoticeEvery
	}
}

// reserved are the bytes of a CNP's payload.
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

// marked: a packet of type UC or UD came with a mark; its sender is told.
func (p *Port) marked(d *netif.Datagram) {
	to, tell := p.datagrams.Marked(&p.head)
	if !tell {
		return
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

// noticed takes a CNP for a queue pair of type UC or UD.
func (p *Port) noticed(d *netif.Datagram) (why string) {
	switch {
	case !p.sealed(d):
		p.s.Stats.WrongICRC++
		return roce.ErrICRC.Error()
	case !p.datagrams.Noticed(p.head.Dst, d.Src.Addr()):
		p.s.Stats.NoQueuePair++
		return "no queue pair takes it"
	}
	p.s.Stats.CNPHeard++
	return ""
}
