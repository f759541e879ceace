package connect

import (
	"net/netip"
	"syscall"

	"urdma/urdmad/cm"
	"urdma/urdmad/netif"
	"urdma/urdmad/roce"
	"urdma/wire"
	"urdma/wire/ibcm"
)

// packetConn is a connection over RoCEv2 as cm.Conn. Package roce tells copies of a message
// apart; cm has requests and replies repeated.
type packetConn struct {
	*roce.Conn
	id *cm.ID
}

func (n *network) packets(id *cm.ID, c *roce.Conn) *packetConn {
	k := &packetConn{c, id}
	c.Owner = k
	return k
}

func (k *packetConn) Owner() *cm.ID                            { return k.id }
func (k *packetConn) Port() uint16                             { return k.Local.Port() }
func (k *packetConn) PeerAddr() netip.Addr                     { return k.Peer.Addr() }
func (k *packetConn) ISN() wire.PSN                            { return 0 }
func (k *packetConn) Acknowledge()                             {}
func (k *packetConn) Extension(cm.QueuePair) wire.TRPExtension { return wire.TRPExtension{} }

func (k *packetConn) Start(s cm.Start) {
	k.IRD, k.ORD, k.RNRRetry = s.IRD, s.ORD, s.RNRRetry
	patience(&s)
	k.Conn.Start(QPOf(s.QP))
}

// send says what a packet of cm's says.
func (k *packetConn) send(n *network, p *cm.Packet) {
	c := &p.Connect
	offer := roce.Offer{IRD: c.IRD, ORD: c.ORD, PrivateData: c.PrivateData}
	if k.id != nil {
		offer.QP, offer.RNRRetry = QPOf(k.id.QueuePair()), k.id.RNRRetry()
	}
	switch p.TRP.Op {
	case wire.OpRequest:
		link, _ := p.Link.(netif.Link)
		if err := k.Conn.Request(offer, link); err != nil {
			n.Soon(func() { n.m.Refused(k.id, syscall.EINVAL) })
		} else if k.Conn.Asked() {
			n.m.StillWaits(k.id)
		}
	case wire.OpAccept:
		if err := k.Conn.Accept(offer); err != nil {
			n.Soon(k.Conn.Disconnect)
		}
	case wire.OpReject:
		why := ibcm.ConsumerDefined
		if k.id == nil {
			why = ibcm.InvalidService
		}
		k.Conn.Reject(c.PrivateData[:min(len(c.PrivateData), ibcm.MaxReject)], why)
	}
}

// AskedFor is roce.Handler's.
func (n *network) AskedFor(c *roce.Conn, m *ibcm.Message, private []byte) {
	n.packets(nil, c)
	n.m.Arrived(messageOf(c, wire.OpRequest, m, private))
}

// Answered is roce.Handler's.
func (n *network) Answered(c *roce.Conn, m *ibcm.Message) {
	op := wire.OpAccept
	if m.Kind == ibcm.REJ {
		op = wire.OpReject
	}
	n.m.Arrived(messageOf(c, op, m, append([]byte(nil), m.Private...)))
}

// messageOf is a request or its answer as cm takes it.
func messageOf(c *roce.Conn, op wire.TRPOp, m *ibcm.Message, private []byte) *cm.Packet {
	return &cm.Packet{Dev: c.Dev, Local: c.Local, Peer: c.Peer, TRP: wire.TRP{Op: op}, Conn: c.Owner.(*packetConn),
		Connect: wire.TRPConnect{IRD: uint16(m.Responder), ORD: uint16(m.Initiator), PrivateData: private, HasExt: true, Ext: wire.TRPExtension{QPN: m.QPN}}}
}
