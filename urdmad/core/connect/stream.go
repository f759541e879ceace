package connect

import (
	"net/netip"
	"syscall"

	"urdma/urdmad/core/cm"
	"urdma/urdmad/core/mpa"
	"urdma/urdmad/core/qp"
	"urdma/wire"
)

// streamConn makes a connection over TCP a cm.Conn. Its handshake is a request and a reply, which TCP
// neither loses nor repeats. When cm repeats a request, TCP's state shows whether the peer's host still
// answers.
type streamConn struct {
	*mpa.Conn
	id *cm.ID
	n  *network
}

func (n *network) stream(id *cm.ID, c *mpa.Conn) *streamConn {
	k := &streamConn{c, id, n}
	c.Owner = k
	return k
}

func (k *streamConn) Owner() *cm.ID        { return k.id }
func (k *streamConn) Port() uint16         { return k.Local.Port() }
func (k *streamConn) PeerAddr() netip.Addr { return k.Peer.Addr() }
func (k *streamConn) ISN() wire.PSN        { return 0 }
func (k *streamConn) Acknowledge()         {}

// maxStreamSegment is the greatest length of a segment that a urdmad accepts over TCP.
const maxStreamSegment = 65532

func (k *streamConn) Extension(q cm.QueuePair) wire.TRPExtension {
	e := k.n.e.TRP.Offer(k.Dev, QPOf(q))
	e.MaxSegment, e.RecvWindow = maxStreamSegment, 1
	return e
}

func (k *streamConn) Start(s cm.Start) {
	k.IRD, k.ORD, k.RNRRetry = s.IRD, s.ORD, s.RNRRetry
	k.Conn.Start(mpa.Start{QP: QPOf(s.QP), Passive: s.Passive, Patience: patience(&s)})
}

// send sends the content of a packet from cm.
func (k *streamConn) send(n *network, p *cm.Packet) {
	c := &p.Connect
	offer := mpa.Offer{IRD: c.IRD, ORD: c.ORD, PrivateData: c.PrivateData, Extension: c.Ext}
	switch p.TRP.Op {
	case wire.OpRequest:
		if err := k.Conn.Request(offer); err != nil {
			n.Soon(func() { n.Refused(k.Conn, errnoOf(err)) })
		} else if k.Conn.Asked() {
			n.m.StillWaits(k.id)
		}
	case wire.OpAccept:
		offer.Extension = k.Extension(k.id.QueuePair())
		k.Conn.Accept(offer)
	case wire.OpReject:
		k.Conn.Reject(c.PrivateData)
	}
}

func errnoOf(err error) syscall.Errno {
	if errno, ok := err.(syscall.Errno); ok {
		return errno
	}
	return syscall.EIO
}

// packetOf converts a request or a reply to a packet for cm. A peer with revision 1 states no number of
// Reads: it gets siw's default.
func (n *network) packetOf(c *mpa.Conn, op wire.TRPOp, m *wire.MPA) *cm.Packet {
	p := &cm.Packet{Dev: c.Dev, Local: c.Local, Peer: c.Peer, TRP: wire.TRP{Op: op}, Conn: c.Owner.(*streamConn)}
	p.Connect = wire.TRPConnect{IRD: m.IRD, ORD: m.ORD, PrivateData: m.PrivateData}
	if !m.Enhanced {
		p.Connect.IRD, p.Connect.ORD = defaultReads, defaultReads
	}
	if t := c.Terms(); t.Extended {
		p.Connect.HasExt, p.Connect.Ext = true, t.Extension
	}
	return p
}

const defaultReads = 16

// Requested implements mpa.Handler.
func (n *network) Requested(c *mpa.Conn, m *wire.MPA) {
	n.stream(nil, c)
	n.m.Arrived(n.packetOf(c, wire.OpRequest, m))
}

// Replied implements mpa.Handler.
func (n *network) Replied(c *mpa.Conn, m *wire.MPA) {
	p := n.packetOf(c, wire.OpAccept, m)
	if m.Reject { // without a listener, TCP refuses the connection
		p.TRP.Op, p.Connect.IRD = wire.OpReject, cm.ByConsumer
	}
	n.m.Arrived(p)
}

// Refused implements mpa.Handler.
func (n *network) Refused(c *mpa.Conn, errno syscall.Errno) { n.m.Refused(IDOf(&c.Connection), errno) }

var _ qp.Carrier = (*mpa.Conn)(nil)
