package connect

import (
	"net/netip"

	"urdma/urdmad/core/cm"
	"urdma/urdmad/core/netif"
	"urdma/urdmad/core/roce"
	"urdma/wire"
	"urdma/wire/ibcm"
)

// packetConn makes a connection over RoCEv2 a cm.Conn. Package roce recognises copies of a message. cm
// repeats requests and replies, and limits private data to MaxPrivate.
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

// send sends the content of a packet from cm.
func (k *packetConn) send(n *network, p *cm.Packet) {
	c := &p.Connect
	offer := roce.Offer{IRD: c.IRD, ORD: c.ORD, PrivateData: c.PrivateData}
	if k.id != nil {
		offer.QP, offer.RNRRetry, offer.TrafficClass = QPOf(k.id.QueuePair()), k.id.RNRRetry(), k.id.TrafficClass()
	}
	switch p.TRP.Op {
	case wire.OpRequest:
		link, _ := p.Link.(netif.Link)
		if k.Conn.Request(offer, link); k.Conn.Asked() {
			n.m.StillWaits(k.id)
		}
	case wire.OpAccept:
		k.Conn.Accept(offer)
	case wire.OpReject:
		k.Conn.Reject(c.PrivateData, ibcm.Reason(c.IRD))
	}
}

// AskedFor implements roce.Handler.
func (n *network) AskedFor(c *roce.Conn, m *ibcm.Message, private []byte) {
	n.packets(nil, c)
	n.m.Arrived(messageOf(c, wire.OpRequest, m, private))
}

// Answered implements roce.Handler.
func (n *network) Answered(c *roce.Conn, m *ibcm.Message) {
	p := messageOf(c, wire.OpAccept, m, append([]byte(nil), m.Private...))
	if m.Kind == ibcm.REJ {
		p.TRP.Op, p.Connect.IRD = wire.OpReject, uint16(m.Reason)
	}
	n.m.Arrived(p)
}

// messageOf converts a request or its answer to a packet for cm.
func messageOf(c *roce.Conn, op wire.TRPOp, m *ibcm.Message, private []byte) *cm.Packet {
	return &cm.Packet{Dev: c.Dev, Local: c.Local, Peer: c.Peer, TRP: wire.TRP{Op: op}, Conn: c.Owner.(*packetConn),
		Connect: wire.TRPConnect{IRD: uint16(m.Responder), ORD: uint16(m.Initiator), PrivateData: private, HasExt: true,
			Ext: wire.TRPExtension{QPN: m.QPN}}}
}

// asker is the link by which a question for a queue pair of type UD arrived.
type asker struct {
	netif.Link
	tid uint64
}

// say sends a packet of an id for datagrams.
func (n *network) say(p *cm.Packet) {
	c := &p.Connect
	if p.TRP.Op == wire.OpResolved && c.IRD == cm.NotYet {
		return // to InfiniBand the same number means that there is no queue pair
	}
	q := roce.SIDR{Dev: p.Dev, Local: p.Local, Peer: p.Peer, ID: uint32(p.TRP.PSN), Private: c.PrivateData}
	switch l := p.Link.(type) {
	case netif.Link:
		q.Link = l
	case asker:
		q.Link, q.TID = l.Link, l.tid
	}
	if p.TRP.Op == wire.OpResolved {
		q.Reply, q.ID, q.Status, q.QPN, q.QKey = true, uint32(p.TRP.Ack), uint8(c.IRD), c.Ext.QPN, c.Ext.Cookie
	}
	n.e.RoCE.SendSIDR(&q)
}

// SIDRArrived implements roce.Handler.
func (n *network) SIDRArrived(q *roce.SIDR) {
	p := &cm.Packet{Dev: q.Dev, Link: asker{q.Link, q.TID}, Local: q.Local, Peer: q.Peer,
		TRP:     wire.TRP{Op: wire.OpResolve, PSN: wire.PSN(q.ID)},
		Connect: wire.TRPConnect{PrivateData: q.Private}}
	if q.Reply {
		p.TRP = wire.TRP{Op: wire.OpResolved, Ack: wire.PSN(q.ID)}
		p.Connect.IRD, p.Connect.HasExt, p.Connect.Ext = uint16(q.Status), true, wire.TRPExtension{QPN: q.QPN, Cookie: q.QKey}
	}
	n.m.Arrived(p)
}
