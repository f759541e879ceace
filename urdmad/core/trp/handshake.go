package trp

import (
	"bytes"
	"errors"
	"net/netip"

	"urdma/urdmad/core/handshake"
	"urdma/urdmad/core/netif"
	"urdma/urdmad/core/qp"
	"urdma/urdmad/core/rdmap"
	"urdma/wire"
)

// This file encodes and decodes the messages that set up connections (docs/WIRE.md chapters 3, 9 and 10).

// Offer returns our offer to a peer for a connection of q on a port, without the cookie.
func (s *Stack) Offer(dev int, q *qp.QP) wire.TRPExtension {
	p := s.ports[dev]
	return wire.TRPExtension{QPN: wire.QPN(q.QPN), MaxSegment: uint16(p.MaxSegment()),
		RecvWindow: uint16(min(p.window, wire.MaxCredits)), Capabilities: rdmap.Capabilities(q)}
}

// SendMessage sends a message that sets up the connection, for queue pair q; for nil a reject.
func (c *Conn) SendMessage(m *handshake.Message, q *qp.QP) {
	if q == nil {
		c.s.SendMessage(m)
		return
	}
	e := c.s.Offer(c.Dev, q)
	e.Cookie, e.MaxSegment = c.LocalCookie, uint16(c.port.MaxSegmentTo(c.Peer.Addr()))
	m.Number = uint32(c.LocalISN)
	c.port.send(m.Link, m.Local, m.Peer, PacketOf(m, &e))
}

// SendMessage sends a message of no connection, or a reject.
func (s *Stack) SendMessage(m *handshake.Message) {
	s.ports[m.Dev].send(m.Link, m.Local, m.Peer, PacketOf(m, nil))
}

// send sends a packet. A full port drops it, as a network may.
func (p *Port) send(link any, local, peer netip.AddrPort, k Packet) {
	frame := p.If.Alloc()
	if frame == nil {
		return
	}
	l, _ := link.(netif.Link)
	path := p.If.Path(l, local, peer)
	size, err := k.Put(path.Payload(frame))
	if err != nil {
		p.s.log.Error("control packet not sent", "error", err)
		return
	}
	path.Send(frame, size)
}

// Packet is a packet of the handshake.
type Packet struct {
	TRP     wire.TRP
	Connect wire.TRPConnect // unused in a fin
}

// Put writes the packet's payload and returns its length.
func (k *Packet) Put(b []byte) (int, error) {
	at := k.TRP.Put(b)
	if !k.TRP.Op.IsControl() {
		return at, nil
	}
	size, err := k.Connect.Put(b[at:])
	return at + size, err
}

// MaxPrivate is the greatest length of a message's private data.
const MaxPrivate = wire.MaxPrivateData

// notYet is the reason in a Resolved that is a Pending.
const notYet = 3

// PacketOf encodes a message. offer is our offer in a request or reply.
func PacketOf(m *handshake.Message, offer *wire.TRPExtension) (k Packet) {
	t, c := &k.TRP, &k.Connect
	t.Ack, c.PrivateData = wire.PSN(m.Answers), m.PrivateData
	switch m.Kind {
	case handshake.Request, handshake.Reply:
		t.Op, t.PSN, c.IRD, c.ORD = wire.OpRequest, wire.PSN(m.Number), m.IRD, m.ORD
		if m.Kind == handshake.Reply {
			t.Op = wire.OpAccept
		}
		if c.HasExt = offer != nil; c.HasExt {
			c.Ext = *offer
			c.Ext.Echo = m.Token
			putByNumber(&c.Ext, &m.ByNumber)
		}
	case handshake.Reject:
		t.Op, c.IRD = wire.OpReject, m.Reason
	case handshake.Retry:
		t.Op, c.HasExt, c.Ext.Echo = wire.OpRetry, true, m.Token
	case handshake.Resolve:
		t.Op, t.PSN, c.HasExt, c.Ext.QPN = wire.OpResolve, wire.PSN(m.Number), true, wire.QPN(m.QPN)
	case handshake.Resolved:
		t.Op, c.IRD, c.HasExt = wire.OpResolved, m.Reason, m.Reason == 0
		c.Ext.QPN, c.Ext.Cookie = wire.QPN(m.QPN), m.QKey
	case handshake.Pending:
		t.Op, c.IRD = wire.OpResolved, notYet
	}
	if t.Op == wire.OpRequest && !c.Ext.ByNumber() || t.Op == wire.OpResolve {
		c.Padding = max(0, minRequest(m.Local.Addr())-k.size(m.Local.Addr()))
	}
	return k
}

func putByNumber(e *wire.TRPExtension, n *handshake.ByNumber) {
	if n.Target != 0 {
		e.Target, e.Cookie, e.Echo = wire.QPN(n.Target), n.Cookie, n.Echo
		e.MinRNRTimer, e.PathMTU, e.RQPSN = n.MinRNRTimer, n.PathMTU, wire.PSN(n.RQPSN)
	}
}

var errShort = errors.New("trp: the request is shorter than its answer may be")

// Decode decodes a packet with the header t into a message, which has the addresses. The message keeps nothing of body,
// most of which may be padding.
func Decode(m *handshake.Message, t *wire.TRP, body []byte) error {
	var c wire.TRPConnect
	if err := c.Parse(body); err != nil {
		return err
	}
	own := m.Local.Addr()
	m.Allowance = amplification * (overhead(own) + wire.TRPLen + len(body))
	m.Number, m.Answers, m.PrivateData, m.QPN = uint32(t.PSN), uint32(t.Ack), bytes.Clone(c.PrivateData), uint32(c.Ext.QPN)
	switch t.Op {
	case wire.OpRequest, wire.OpAccept:
		if t.Op == wire.OpAccept {
			m.Kind = handshake.Reply
		}
		e := c.Ext
		m.IRD, m.ORD, m.Token, m.Offer, m.Unusable = c.IRD, c.ORD, e.Echo, &e, c.CheckExt()
		m.ByNumber = handshake.ByNumber{Target: uint32(e.Target), Cookie: e.Cookie, Echo: e.Echo,
			MinRNRTimer: e.MinRNRTimer, PathMTU: e.PathMTU, RQPSN: uint32(e.RQPSN)}
	case wire.OpReject:
		m.Kind, m.Reason = handshake.Reject, c.IRD
	case wire.OpRetry:
		m.Kind, m.Token = handshake.Retry, c.Ext.Echo
	case wire.OpResolve:
		m.Kind = handshake.Resolve
		if m.Allowance < amplification*minRequest(own) {
			return errShort
		}
	case wire.OpResolved:
		m.Kind, m.QKey = handshake.Resolved, c.Ext.Cookie
		switch {
		case c.HasExt:
			m.Reason = c.IRD
		case c.IRD == notYet:
			m.Kind = handshake.Pending
		default: // nobody listens, if no reason is given
			m.Reason = max(1, c.IRD)
		}
	}
	return nil
}

// amplification is how many bytes may be sent to an unproved address for each byte that seems to come from
// it, as in QUIC (RFC 9000 section 8.1; docs/WIRE.md chapter 3, "Proof of an address").
const amplification = 3

// overhead returns the length of the IP and UDP headers between addresses of own's family.
func overhead(own netip.Addr) int { return wire.IPLen(own) + wire.UDPLen }

// minRequest returns the length to which a request's IP packet is padded, so that the longest accept may
// answer it at once, and a short one may be repeated.
func minRequest(own netip.Addr) int {
	longest := overhead(own) + wire.TRPLen + wire.ConnectLen + wire.TRPExtensionLen + wire.MaxPrivateData
	return (longest + overhead(own) + wire.TRPExtLen + amplification - 1) / amplification
}

func (k *Packet) size(own netip.Addr) int { return overhead(own) + wire.TRPLen + k.Connect.Len() }

// Size returns the number of bytes of a message's IP packet, and of the fin of a connection that it accepts and that
// is then given up.
func Size(m *handshake.Message) (packet, fin int) {
	k := PacketOf(m, &wire.TRPExtension{})
	return k.size(m.Local.Addr()), overhead(m.Local.Addr()) + wire.TRPExtLen
}

// Answers reports whether a message from another host answers the connection's request.
func (c *Conn) Answers(m *handshake.Message) bool {
	return m.Kind != handshake.Request && m.Answers == uint32(c.LocalISN) && m.Peer.Addr() == c.Peer.Addr()
}

// messageArrived passes a message to the connection manager. body follows its header, and nobody else uses it.
func (p *Port) messageArrived(d *netif.Datagram, t *wire.TRP, body []byte) {
	m := &handshake.Message{Dev: p.If.Dev, Link: d.Link, Local: d.Dst, Peer: d.Src}
	if err := Decode(m, t, body); err != nil {
		p.s.log.Debug("bad handshake packet", "from", d.Src.String(), "error", err)
		return
	}
	c := p.conns[d.Dst.Port()]
	if c != nil && c.state == connOpen && m.Kind == handshake.Reply && c.Answers(m) && c.Peer == d.Src {
		c.acknowledgeNow() // our first acknowledgement was lost
	} else if !p.s.handler.Handshake(c, m) {
		p.send(d.Link, d.Dst, d.Src, FinOf(m))
	}
}

// FinOf returns the fin that answers the accept of a connection that was given up here (docs/WIRE.md
// chapter 3, rule 8).
func FinOf(accept *handshake.Message) Packet {
	return Packet{TRP: wire.TRP{Op: wire.OpFin, PSN: wire.PSN(accept.Answers), Ack: wire.PSN(accept.Number),
		Cookie: accept.Offer.(*wire.TRPExtension).Cookie}}
}
