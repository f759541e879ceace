package trp

import (
	"net/netip"

	"urdma/urdmad/core/netif"
	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
	"urdma/wire"
)

// Extension returns our offer to a peer for a connection of q.
func (c *Conn) Extension(q *qp.QP) wire.TRPExtension {
	e := c.s.Offer(c.Dev, q)
	e.Cookie, e.MaxSegment = c.LocalCookie, uint16(c.port.MaxSegmentTo(c.Peer.Addr()))
	return e
}

// Offer returns our offer to a peer for a connection of q on a port, without the cookie.
func (s *Stack) Offer(dev int, q *qp.QP) wire.TRPExtension {
	p := s.ports[dev]
	capabilities := uint32(0)
	if q.Type == abi.QPTypeXRCRecv {
		capabilities |= wire.CapXRC
	}
	return wire.TRPExtension{QPN: wire.QPN(q.QPN), MaxSegment: uint16(p.MaxSegment()),
		RecvWindow: uint16(min(p.window, wire.MaxCredits)), Capabilities: capabilities}
}

// ControlPacket is a request, an accept, a reject, or the fin of a connection that was never started on
// this side.
type ControlPacket struct {
	Dev         int
	Link        netif.Link // to the peer or the next hop
	Local, Peer netip.AddrPort
	TRP         wire.TRP
	Connect     wire.TRPConnect // unused in a fin
}

// SendControl sends a control packet. A full port drops the packet, as a network may.
func (s *Stack) SendControl(p *ControlPacket) {
	n := s.ports[p.Dev].If
	frame := n.Alloc()
	if frame == nil {
		return
	}
	path := n.Path(p.Link, p.Local, p.Peer)
	size, err := p.Put(path.Payload(frame))
	if err != nil {
		s.log.Error("control packet not sent", "error", err)
		return
	}
	path.Send(frame, size)
}

// Put writes the packet's payload and returns its length.
func (p *ControlPacket) Put(b []byte) (int, error) {
	at := p.TRP.Put(b)
	if !p.TRP.Op.IsControl() {
		return at, nil
	}
	size, err := p.Connect.Put(b[at:])
	return at + size, err
}
