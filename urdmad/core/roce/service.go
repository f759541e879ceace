package roce

import (
	"net/netip"

	"urdma/urdmad/core/handshake"
	"urdma/urdmad/core/netif"
	"urdma/wire"
	"urdma/wire/ibcm"
	"urdma/wire/roce"
)

// This file has service ID resolution (InfiniBand vol. 1): SIDR_REQ asks for the queue pair of type UD at a port
// number of RDMA_PS_UDP, SIDR_REP answers. The sender repeats a request that is not answered.

// asker is the link by which a SIDR_REQ arrived, with the transaction ID that the answer repeats.
type asker struct {
	netif.Link
	tid uint64
}

// SendService sends a Resolve or its answer. It is lost if the port has no free buffer.
func (s *Stack) SendService(q *handshake.Message) {
	p := s.ports[q.Dev]
	link, _ := q.Link.(netif.Link)
	var m ibcm.Message
	switch q.Kind {
	case handshake.Resolve:
		private := make([]byte, ibcm.HeaderLen, ibcm.HeaderLen+len(q.PrivateData))
		(&ibcm.Addresses{Src: q.Local, Dst: q.Peer.Addr()}).Put(private)
		m = ibcm.Message{Kind: ibcm.SIDRRequest, Local: q.Number,
			TID:     ibcm.AskingTID(q.Number, q.Local.Port(), q.Peer.Port()),
			Service: ibcm.UDPService(q.Peer.Port()), PKey: roce.DefaultPKey, Private: append(private, q.PrivateData...)}
	case handshake.Resolved:
		by, _ := q.Link.(asker)
		link = by.Link
		m = ibcm.Message{Kind: ibcm.SIDRReply, Local: q.Answers, TID: by.tid, Service: ibcm.UDPService(q.Local.Port()),
			Status: uint8(q.Reason), QPN: wire.QPN(q.QPN), QKey: q.QKey, Private: q.PrivateData}
	default:
		return // InfiniBand can't say that the program has not decided yet
	}
	path := p.If.Path(link, netip.AddrPortFrom(p.If.IP(), roce.Port), netip.AddrPortFrom(q.Peer.Addr(), roce.Port))
	p.manage(&path, &m)
}

// sidrRequest handles a SIDR_REQ.
func (p *Port) sidrRequest(d *netif.Datagram, m *ibcm.Message) bool {
	var a ibcm.Addresses
	service, ok := m.Service.UDPPort()
	if !ok || a.Parse(m.Private) != nil || a.Src.Addr().Unmap() != d.Src.Addr() ||
		m.PKey&0x7fff != roce.DefaultPKey&0x7fff {
		const unsupported = 1
		p.answer(d, &ibcm.Message{Kind: ibcm.SIDRReply, TID: m.TID, Local: m.Local, Status: unsupported, Service: m.Service})
		return false // no service of rdma_cm
	}
	q := p.serviceOf(handshake.Resolve, service, netip.AddrPortFrom(d.Src.Addr(), a.Src.Port()),
		m.Private[ibcm.HeaderLen:])
	q.Link, q.Number = asker{d.Link, m.TID}, m.Local
	p.s.handler.ServiceArrived(q)
	return true
}

// sidrReply handles a SIDR_REP.
func (p *Port) sidrReply(d *netif.Datagram, m *ibcm.Message) {
	asking, asked := ibcm.Numbers(m.TID)
	q := p.serviceOf(handshake.Resolved, asking, netip.AddrPortFrom(d.Src.Addr(), asked), m.Private)
	q.Answers, q.Reason, q.QPN, q.QKey = m.Local, uint16(m.Status), uint32(m.QPN), m.QKey
	p.s.handler.ServiceArrived(q)
}

func (p *Port) serviceOf(k handshake.Kind, own uint16, peer netip.AddrPort,
	private []byte) *handshake.Message {
	return &handshake.Message{Kind: k, Dev: p.If.Dev, Local: netip.AddrPortFrom(p.If.IP(), own), Peer: peer,
		PrivateData: append([]byte(nil), private...)}
}
