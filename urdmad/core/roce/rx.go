package roce

import (
	"urdma/urdmad/core/netif"
	"urdma/urdmad/core/qp"
	"urdma/wire/ibcm"
	"urdma/wire/roce"
)

// Receive handles a datagram from the interface.
func (p *Port) Receive(d *netif.Datagram) {
	p.receive(d)
}

// receive handles a datagram. If it drops it, it returns the reason.
func (p *Port) receive(d *netif.Datagram) (why string) {
	s, h := p.s, &p.head
	if d.Dst.Port() != roce.Port && !netif.OfDatagrams(p.If) {
		if p.If.Decline(d) {
			return ""
		}
		s.Stats.NoQueuePair++
		return "RoCEv2 has UDP port 4791"
	}
	from, to, err := h.Payload(d.Head, len(d.Data))
	if err != nil {
		s.Stats.Malformed++
		return err.Error()
	}
	switch t := h.Opcode.Transport(); {
	case d.Dst.Addr().IsMulticast() && t != roce.UD:
		s.Stats.NoQueuePair++
		return "nothing but datagrams goes to groups"
	case t == roce.UC, t == roce.UD && h.Opcode != roce.CNP:
		if why = p.unreliable(d, d.Data[from:to]); why == "" && p.If.Congested(d) && from < to {
			p.marked(d)
		}
		return why
	case t != roce.RC && t != roce.XRC && h.Opcode != roce.CNP:
		s.Stats.Unsupported++
		return "a transport that is not supported"
	}
	c := s.conns[h.Dst]
	if c == nil && h.Opcode == roce.CNP {
		return p.noticed(d)
	}
	if c == nil || c.port != p || c.transport != h.Opcode.Transport() && h.Opcode != roce.CNP ||
		c.Peer.Addr() != d.Src.Addr() || !qp.Receives(c.QP.State()) {
		s.Stats.NoQueuePair++
		return "no queue pair takes it"
	}
	if !p.sealed(d) {
		s.Stats.WrongICRC++
		return roce.ErrICRC.Error()
	}
	if h.Opcode == roce.CNP {
		s.Stats.CNPHeard++
		c.req.Congested()
		return ""
	}
	s.table.Serving = c.QP
	h.Opcode = h.Opcode.Operation()
	if why = c.packet(h, d.Link, d.Data[from:to]); why == "" && from < to && p.If.Congested(d) {
		c.congested(h)
	}
	c.ready() // the timer is set when this turn sends
	return why
}

// unreliable handles a packet for a queue pair of type UD or UC.
func (p *Port) unreliable(d *netif.Datagram, data []byte) (why string) {
	s, h := p.s, &p.head
	switch {
	case !p.sealed(d):
		s.Stats.WrongICRC++
		return roce.ErrICRC.Error()
	case h.PKey&0x7fff != roce.DefaultPKey&0x7fff:
		s.Stats.NoQueuePair++
		return "another partition's"
	case h.Opcode.Transport() == roce.UC:
		return p.part(d, data)
	case h.Dst != ibcm.QP:
		return p.message(d, data)
	case h.QKey != ibcm.QKey, h.Src != ibcm.QP, h.Opcode != roce.UD|roce.SendOnly, d.Dst.Addr().IsMulticast():
		s.Stats.NoQueuePair++
		return "no management datagram"
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

func (c *Conn) packet(h *roce.Header, link netif.Link, data []byte) (why string) {
	if h.PKey&0x7fff != roce.DefaultPKey&0x7fff {
		c.s.Stats.NoQueuePair++
		return "another partition's"
	}
	if h.Opcode.Traits().Is(roce.Response) {
		return c.response(h, data)
	}
	return c.request(h, link, data)
}
