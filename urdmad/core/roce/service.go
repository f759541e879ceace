package roce

import (
	"net/netip"

	"urdma/urdmad/core/netif"
	"urdma/wire"
	"urdma/wire/ibcm"
	"urdma/wire/roce"
)

// SIDR is a message of service ID resolution (InfiniBand vol. 1): SIDR_REQ asks for the queue pair of type UD
// at a port number of RDMA_PS_UDP, SIDR_REP answers. The sender repeats a request that is not answered. A reply
// has the Dev, Link, addresses, ID and TID of its request.
type SIDR struct {
	Dev         int
	Link        netif.Link
	Local, Peer netip.AddrPort
	ID          uint32
	TID         uint64 // in a request, set by SendSIDR
	Reply       bool
	Status      uint8    // of a reply; 0: QPN and QKey are valid
	QPN         wire.QPN // of a reply
	QKey        uint32
	Private     []byte
}

// SendSIDR sends a request or a reply. It is lost if the port has no free buffer.
func (s *Stack) SendSIDR(q *SIDR) {
	p := s.ports[q.Dev]
	m := ibcm.Message{Kind: ibcm.SIDRReply, Local: q.ID, TID: q.TID, Service: ibcm.UDPService(q.Local.Port()),
		Status: q.Status, QPN: q.QPN, QKey: q.QKey, Private: q.Private}
	if !q.Reply {
		private := make([]byte, ibcm.HeaderLen, ibcm.HeaderLen+len(q.Private))
		(&ibcm.Addresses{Src: q.Local, Dst: q.Peer.Addr()}).Put(private)
		q.TID = ibcm.AskingTID(q.ID, q.Local.Port(), q.Peer.Port())
		m = ibcm.Message{Kind: ibcm.SIDRRequest, Local: q.ID, TID: q.TID, Service: ibcm.UDPService(q.Peer.Port()),
			PKey: roce.DefaultPKey, Private: append(private, q.Private...)}
	}
	path := p.If.Path(q.Link, netip.AddrPortFrom(p.If.IP(), roce.Port), netip.AddrPortFrom(q.Peer.Addr(), roce.Port))
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
	p.s.handler.SIDRArrived(&SIDR{Dev: p.If.Dev, Link: d.Link, Local: netip.AddrPortFrom(p.If.IP(), service),
		Peer: netip.AddrPortFrom(d.Src.Addr(), a.Src.Port()),
		ID:   m.Local, TID: m.TID, Private: append([]byte(nil), m.Private[ibcm.HeaderLen:]...)})
	return true
}

// sidrReply handles a SIDR_REP.
func (p *Port) sidrReply(d *netif.Datagram, m *ibcm.Message) {
	asking, asked := ibcm.Numbers(m.TID)
	p.s.handler.SIDRArrived(&SIDR{Dev: p.If.Dev, Link: d.Link, Local: netip.AddrPortFrom(p.If.IP(), asking),
		Peer: netip.AddrPortFrom(d.Src.Addr(), asked),
		ID:   m.Local, Reply: true, Status: m.Status, QPN: m.QPN, QKey: m.QKey, Private: append([]byte(nil), m.Private...)})
}
