package roce

import (
	"net/netip"

	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/netif"
	"urdma/wire/roce"
)

// This file is about congestion as routers tell of it (annex A17.9): they mark packets, who
// gets them says so to their sender by a packet of its own (CNP), and that one sends less
// (rc/window.go, pace.go).

// capable says that a packet's marks are looked at (RFC 3168, ECT(0)); the other bits of a
// traffic class are the program's.
const capable = 2

// noticeEvery is how often a queue pair's peer is told of marks at most.
const noticeEvery = 50 * clock.Microsecond

// congested: a packet that counts came with a mark.
func (c *Conn) congested(h *roce.Header) {
	if h.Opcode.Traits().Is(roce.Response) { // the answer to a Read of ours: we ask for less
		c.req.Congested()
	}
	if now := c.now(); c.live() && now >= c.noticeAfter {
		c.notice, c.noticeAfter = true, now+noticeEvery
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
	f, uc := p.datagrams.Flow(p.head.Dst)
	if f == nil { // a group's
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

// noticed takes a CNP for a queue pair of type UC or UD.
func (p *Port) noticed(d *netif.Datagram) (why string) {
	if !p.sealed(d) {
		p.s.Stats.WrongICRC++
		return roce.ErrICRC.Error()
	}
	f, uc := p.datagrams.Flow(p.head.Dst)
	from := d.Src.Addr()
	if f == nil || uc != nil && uc.Peer.Addr() != from || uc == nil && !p.datagrams.SendsTo(from) {
		p.s.Stats.NoQueuePair++
		return "no queue pair takes it"
	}
	f.(*flow).noticed(p.s.clock.Now)
	p.s.Stats.CNPHeard++
	return ""
}
