package connect

import (
	"errors"
	"net/netip"
	"syscall"

	"urdma/urdmad/core/cm"
	"urdma/urdmad/core/handshake"
	"urdma/urdmad/core/qpconnect"
	"urdma/urdmad/core/trp"
)

// packets sets up connections of TRP.
type packets struct{ *network }

func (packets) MaxPrivate(handshake.Kind) int        { return trp.MaxPrivate }
func (packets) Size(m *cm.Message) (packet, fin int) { return trp.Size(m) }
func (x packets) Send(m *cm.Message)                 { x.e.TRP.SendMessage(m) }
func (packets) Listen(*cm.ID, int) error             { return nil }
func (packets) Unlisten(*cm.ID, int)                 {}

func (x packets) Open(id *cm.ID, dev int, port uint16, peer netip.AddrPort) (cm.Conn, error) {
	c, err := x.e.TRP.Open(dev, port, peer)
	if errors.Is(err, trp.ErrPortInUse) {
		return nil, syscall.EADDRINUSE
	}
	if err != nil {
		return nil, err
	}
	k := &packetConn{c, side{id, &c.Connection}}
	c.Owner = k
	return k, nil
}

// packetConn makes a TRP connection a cm.Conn.
type packetConn struct {
	*trp.Conn
	side
}

func (k *packetConn) Send(m *cm.Message) { k.SendMessage(m, k.qp()) }

func (k *packetConn) Start(s cm.Start) {
	k.Peer = netip.AddrPortFrom(k.Peer.Addr(), s.PeerPort)
	k.Conn.Start(trp.Start{QP: QPOf(s.QP), Link: s.Link, PeerISN: s.PeerNumber, Offer: s.Offer, Passive: s.Passive,
		Patience: k.agreed(&s)})
}

// Handshake implements trp.Handler.
func (n *network) Handshake(c *trp.Conn, m *cm.Message) (wanted bool) {
	var pair *qpconnect.Pair
	if c != nil {
		pair = PairOf(&c.Connection)
	}
	switch {
	case m.Kind == handshake.Request && m.ByNumber.Target != 0 && (pair != nil || m.Local.Port() == qpconnect.UDPPort):
		n.numbers.m.Request(m)
		return true
	case m.Kind == handshake.Request && n.e.OverTCP(m.Dev): // ids connect over TCP there
		n.e.TRP.SendMessage(&cm.Message{Kind: handshake.Reject, Dev: m.Dev, Link: m.Link, Local: m.Local, Peer: m.Peer,
			Answers: m.Number, Reason: handshake.InvalidService})
		return true
	case m.Kind == handshake.Request || c == nil || pair == nil && !c.Answers(m):
		return n.m.Receive(nil, m)
	case pair != nil:
		return m.Kind != handshake.Reply || n.numbers.m.Accept(pair, m)
	}
	return n.m.Receive(c.Owner.(*packetConn), m)
}
