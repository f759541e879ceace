package roce

import (
	"net/netip"

	"urdma/urdmad/core/handshake"
	"urdma/urdmad/core/netif"
	"urdma/urdmad/core/qp"
	"urdma/wire/ibcm"
	"urdma/wire/roce"
)

// This file sends and handles the messages of communication management (InfiniBand vol. 1), which are
// management datagrams.

// messageArrived handles a management datagram.
func (p *Port) messageArrived(d *netif.Datagram, data []byte) bool {
	var b [ibcm.Len]byte // a copy: the sender may still change the original
	var m ibcm.Message
	if err := m.Parse(b[:copy(b[:], data)]); err != nil {
		p.s.Stats.Malformed++
		return false
	}
	switch m.Kind {
	case ibcm.REQ:
		return p.requestArrived(d, &m)
	case ibcm.SIDRRequest:
		return p.sidrRequest(d, &m)
	case ibcm.SIDRReply:
		p.sidrReply(d, &m)
		return true
	}
	c := p.s.ids[m.Remote]
	if c == nil && m.Kind == ibcm.REJ && m.Reason == ibcm.TimedOut { // its sender may not know our ID
		c = p.s.asked[requestKey{p, d.Src.Addr(), m.Local}]
	}
	if c == nil || c.port != p || c.Peer.Addr() != d.Src.Addr() || c.shake.remote != 0 && c.shake.remote != m.Local {
		switch m.Kind {
		case ibcm.DREQ:
			p.answer(d, &ibcm.Message{Kind: ibcm.DREP, TID: m.TID, Local: m.Remote, Remote: m.Local})
		case ibcm.REP:
			p.answer(d, &ibcm.Message{Kind: ibcm.REJ, TID: m.TID, Local: m.Remote, Remote: m.Local, Refused: ibcm.RefusedREP,
				Reason: ibcm.InvalidCommID})
		}
		return false // it is of no connection
	}
	c.messageArrived(&m)
	return true
}

func (c *Conn) messageArrived(m *ibcm.Message) {
	h := c.shake
	switch {
	case h.state == requesting && m.TID != h.tid, h.state != requesting && m.Kind == ibcm.REJ && m.TID != h.theirs.TID:
	case m.Kind == ibcm.MRA:
		h.asked = true
	case m.Kind == ibcm.REP && h.state == requesting:
		if c.transport == roce.XRC {
			m.QPN = m.Target
		}
		h.theirs, h.remote, h.state = *m, m.Local, replied
		c.s.handler.Replied(&c.Connection, c.messageOf(handshake.Reply, m, m.Private))
	case m.Kind == ibcm.REP && h.state == established:
		c.manage(c.use()) // our first RTU was lost
	case m.Kind == ibcm.REJ && h.state == requesting:
		c.forget()
		c.s.handler.Replied(&c.Connection, c.messageOf(handshake.Reject, m, m.Private))
	case m.Kind == ibcm.REJ && h.state == requested:
		h.withdrawn = true
	case m.Kind == ibcm.REJ && h.state == accepted:
		c.end(qp.CloseRemote)
	case m.Kind == ibcm.RTU:
		c.known()
	case m.Kind == ibcm.LAP:
		c.manage(&ibcm.Message{Kind: ibcm.APR, TID: m.TID, Local: h.local, Remote: h.remote,
			Status: ibcm.AlternateUnsupported})
	case m.Kind == ibcm.DREQ && m.QPN == h.qpn:
		c.manage(&ibcm.Message{Kind: ibcm.DREP, TID: m.TID, Local: h.local, Remote: h.remote})
		if c.live() {
			c.end(qp.CloseRemote)
		} else if h.state == disconnecting {
			c.forget()
		}
	case m.Kind == ibcm.DREP && h.state == disconnecting:
		c.forget()
	}
}

// requestArrived handles a connection request.
func (p *Port) requestArrived(d *netif.Datagram, m *ibcm.Message) bool {
	s, key := p.s, requestKey{p, d.Src.Addr(), m.Local}
	if c := s.asked[key]; c != nil && c.shake.theirs.TID == m.TID {
		c.askedAgain(m)
		return false // asked again
	} else if c != nil {
		p.refuse(d, m, ibcm.StaleConnection)
		return false // its communication ID is that of a connection
	}
	var a ibcm.Addresses
	service, ok := m.Service.TCPPort()
	switch {
	case !ok || a.Parse(m.Private) != nil || a.Src.Addr().Unmap() != d.Src.Addr():
		p.refuse(d, m, ibcm.InvalidService)
		return false // no service of rdma_cm
	case m.Transport != transports[roce.RC] && m.Transport != transports[roce.XRC]:
		p.refuse(d, m, ibcm.InvalidTransport)
		return false // only reliable connections and those of XRC are supported
	case m.PathMTU == 0 || uint32(m.PathMTU) > p.MaxMTU():
		p.refuse(d, m, ibcm.InvalidMTU)
		return false // its path MTU is longer than our packets
	case m.PKey&0x7fff != roce.DefaultPKey&0x7fff:
		p.refuse(d, m, ibcm.Unsupported)
		return false // another partition's
	}
	c := s.newConn(p, netip.AddrPortFrom(p.If.IP(), service), netip.AddrPortFrom(d.Src.Addr(), a.Src.Port()))
	h := c.shake
	h.state, h.remote, h.theirs = requested, m.Local, *m
	h.theirs.Private = nil
	c.speak(roce.RC)
	if m.Transport == ibcm.XRC {
		c.speak(roce.XRC)
	}
	c.mtu = uint32(MTUs[m.PathMTU-1])
	c.class = m.TrafficClass
	c.reach(d.Link)
	s.asked[key] = c
	s.handler.AskedFor(c, c.messageOf(handshake.Request, m, m.Private[ibcm.HeaderLen:]))
	return true
}

// messageOf returns a request or its answer for the connection manager.
func (c *Conn) messageOf(k handshake.Kind, m *ibcm.Message, private []byte) *handshake.Message {
	return &handshake.Message{Kind: k, Dev: c.Dev, Local: c.Local, Peer: c.Peer, IRD: uint16(m.Responder),
		ORD: uint16(m.Initiator), Reason: uint16(m.Reason), QPN: uint32(m.QPN),
		PrivateData: append([]byte(nil), private...)}
}

// askedAgain answers a repeated request.
func (c *Conn) askedAgain(m *ibcm.Message) {
	switch h := c.shake; h.state {
	case requested:
		c.manage(&ibcm.Message{Kind: ibcm.MRA, TID: m.TID, Local: h.local, Remote: h.remote, Timeout: acceptTimeout})
	case accepted, rejected:
		c.manage(&h.ours)
	}
}

// acceptTimeout is the time that peers allow a program to answer a request: 4.3 seconds, and again after
// each repeated request.
const acceptTimeout = 20

func (p *Port) refuse(d *netif.Datagram, m *ibcm.Message, why ibcm.Reason) {
	p.answer(d, &ibcm.Message{Kind: ibcm.REJ, TID: m.TID, Remote: m.Local, Reason: why})
}

// manage sends a message to the peer. A full port drops it, as a network may.
func (c *Conn) manage(m *ibcm.Message) { c.port.manage(&c.path, m) }

// answer sends a message to the sender of a datagram.
func (p *Port) answer(d *netif.Datagram, m *ibcm.Message) {
	path := p.If.Path(d.Link, netip.AddrPortFrom(p.If.IP(), roce.Port), netip.AddrPortFrom(d.Src.Addr(), roce.Port))
	p.manage(&path, m)
}

func (p *Port) manage(path *netif.Path, m *ibcm.Message) {
	frame := p.If.Alloc()
	if frame == nil {
		return
	}
	b := path.Payload(frame)
	h := roce.Header{Opcode: roce.UD | roce.SendOnly, PKey: roce.DefaultPKey, Dst: ibcm.QP, PSN: p.psn, QKey: ibcm.QKey,
		Src: ibcm.QP}
	p.psn = p.psn.Add(1)
	n := h.Put(b)
	if err := m.Put(b[n:]); err != nil { // the connection manager has bounded the private data
		p.s.log.Error("management datagram not sent", "error", err)
		return
	}
	path.Send(frame, n+ibcm.Len+roce.ICRCLen)
}

// guid returns the port's GUID as a channel adapter, from its Ethernet address (EUI-64).
func (p *Port) guid() uint64 {
	m := p.If.MAC()
	return uint64(m[0]^2)<<56 | uint64(m[1])<<48 | uint64(m[2])<<40 | 0xfffe<<24 | uint64(m[3])<<16 | uint64(m[4])<<8 |
		uint64(m[5])
}
