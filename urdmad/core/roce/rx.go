package roce

import (
	"urdma/urdmad/core/netif"
	"urdma/urdmad/core/qp"
	"urdma/wire/ibcm"
	"urdma/wire/roce"
)

// Receive handles a datagram from the interface.
func (p *Port) Receive(d *netif.Datagram) {
	s, h := p.s, &p.head
	if d.Dst.Port() != roce.Port && !netif.OfDatagrams(p.If) {
		if p.If.Decline(d) {
			return
		}
		s.Stats.NoQueuePair++
		return // RoCEv2 has UDP port 4791
	}
	from, to, err := h.Payload(d.Head, len(d.Data))
	if err != nil {
		s.Stats.Malformed++
		return
	}
	switch t := h.Opcode.Transport(); {
	case d.Dst.Addr().IsMulticast() && t != roce.UD:
		s.Stats.NoQueuePair++
		return // nothing but datagrams goes to groups
	case t == roce.UC, t == roce.UD && h.Opcode != roce.CNP:
		if p.unreliable(d, d.Data[from:to]) && p.If.Congested(d) && from < to {
			p.marked(d)
		}
		return
	case t != roce.RC && t != roce.XRC && h.Opcode != roce.CNP:
		s.Stats.Unsupported++
		return // a transport that is not supported
	}
	c := s.conns[h.Dst]
	if c == nil && h.Opcode == roce.CNP {
		p.noticed(d)
		return
	}
	if c == nil || c.port != p || c.transport != h.Opcode.Transport() && h.Opcode != roce.CNP ||
		c.Peer.Addr() != d.Src.Addr() || !qp.Receives(c.QP.State()) {
		s.Stats.NoQueuePair++
		return // no queue pair takes it
	}
	if !p.sealed(d) {
		s.Stats.WrongICRC++
		return
	}
	if h.Opcode == roce.CNP {
		s.Stats.CNPHeard++
		c.req.Congested()
		return
	}
	s.table.Serving = c.QP
	h.Opcode = h.Opcode.Operation()
	if c.packet(h, d.Link, d.Data[from:to]) && from < to && p.If.Congested(d) {
		c.congested(h)
	}
	c.ready() // the timer is set when this turn sends
}

// unreliable handles a packet for a queue pair of type UD or UC; false if it is dropped.
func (p *Port) unreliable(d *netif.Datagram, data []byte) bool {
	s, h := p.s, &p.head
	switch {
	case !p.sealed(d):
		s.Stats.WrongICRC++
		return false
	case h.PKey&0x7fff != roce.DefaultPKey&0x7fff:
		s.Stats.NoQueuePair++
		return false // another partition's
	case h.Opcode.Transport() == roce.UC:
		return p.part(d, data)
	case h.Dst != ibcm.QP:
		return p.message(d, data)
	case h.QKey != ibcm.QKey, h.Src != ibcm.QP, h.Opcode != roce.UD|roce.SendOnly, d.Dst.Addr().IsMulticast():
		s.Stats.NoQueuePair++
		return false // no management datagram
	}
	return p.messageArrived(d, data)
}

// sealed reports whether the CRC is correct.
func (p *Port) sealed(d *netif.Datagram) bool {
	heads := p.If.Heads(d)
	switch {
	case netif.OfDatagrams(p.If):
		return p.come.RightUnseen(heads, d.Data)
	case len(heads) != headsLen(heads[0]>>4):
		return false // the packet has IP options or extension headers
	}
	return p.come.Right(heads, d.Data)
}

// packet handles a packet of a connection; false if it is dropped, or repeated.
func (c *Conn) packet(h *roce.Header, link netif.Link, data []byte) bool {
	if h.PKey&0x7fff != roce.DefaultPKey&0x7fff {
		c.s.Stats.NoQueuePair++
		return false // another partition's
	}
	if h.Opcode.Traits().Is(roce.Response) {
		return c.response(h, data)
	}
	return c.request(h, link, data)
}
