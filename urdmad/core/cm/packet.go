package cm

import (
	"net/netip"
	"syscall"

	"urdma/wire"
)

// Receive handles a packet of the handshake from the network; body follows its header, and nobody else uses
// it.
func (m *Manager) Receive(p *Packet, body []byte) {
	if err := p.Connect.Parse(body); err != nil {
		m.log.Debug("bad handshake packet", "from", p.Peer.String(), "error", err)
		return
	}
	if p.TRP.Op == wire.OpResolve || p.TRP.Op == wire.OpResolved {
		m.services.receive(p, overhead(p)+wire.TRPLen+len(body), false)
		return
	}
	if err := p.Connect.CheckExt(); err != nil && (p.TRP.Op == wire.OpRequest || p.TRP.Op == wire.OpAccept) {
		m.log.Info("handshake that no connection can come of", "from", p.Peer.String(), "error", err)
		m.invalid(p)
		return
	}
	if p.TRP.Op == wire.OpRequest {
		m.request(p, overhead(p)+wire.TRPLen+len(body))
		return
	}
	c := m.answered(p)
	if c == nil {
		if p.TRP.Op == wire.OpAccept {
			m.net.Send(FinOf(p))
		}
		return
	}
	id := c.Owner()
	switch {
	case id.state == connecting && p.TRP.Op == wire.OpAccept:
		m.accepted(id, p)
	case id.state == connecting && p.TRP.Op == wire.OpRetry:
		m.retried(id, p.Connect.Ext.Echo)
	case id.state == connecting && p.TRP.Op == wire.OpReject:
		m.rejected(id, &p.Connect)
	case id.state == connected && p.TRP.Op == wire.OpAccept && id.terms.PeerPort == p.Peer.Port():
		c.Acknowledge() // our first acknowledgement was lost
	}
}

// Arrived handles a message of the handshake that arrived on a connection of its own, or a message for
// datagram ids whose answer is no longer than the question.
func (m *Manager) Arrived(p *Packet) {
	if p.TRP.Op == wire.OpResolve || p.TRP.Op == wire.OpResolved {
		m.services.receive(p, minRequest(p), false)
		return
	}
	id := p.Conn.Owner()
	switch {
	case p.TRP.Op == wire.OpRequest:
		m.arrivedRequest(p, m.net.Now()+m.timeout)
	case id == nil || id.state != connecting:
		p.Conn.Release()
	case p.TRP.Op == wire.OpAccept:
		m.accepted(id, p)
	default:
		m.rejected(id, &p.Connect)
	}
}

// answered returns the connection whose request is answered by an accept, reject or retry, or nil.
func (m *Manager) answered(p *Packet) Conn {
	c := m.net.ConnAt(p.Dev, p.Local.Port())
	if c == nil || c.PeerAddr() != p.Peer.Addr() || p.TRP.Ack != c.ISN() {
		return nil
	}
	return c
}

// invalid answers a packet with unusable values (docs/WIRE.md chapter 3, rule 6).
func (m *Manager) invalid(p *Packet) {
	switch p.TRP.Op {
	case wire.OpRequest:
		m.net.Send(rejectOf(p, Unsupported))
	case wire.OpAccept:
		if c := m.answered(p); c != nil && c.Owner().state == connecting {
			m.net.Send(FinOf(p))
			m.fail(c.Owner(), EventConnectError, syscall.EPROTO)
		}
	}
}

// FinOf returns the fin that answers the accept of a connection that was given up here (docs/WIRE.md
// chapter 3, rule 8).
func FinOf(accept *Packet) *Packet {
	return &Packet{Dev: accept.Dev, Link: accept.Link, Local: accept.Local, Peer: accept.Peer,
		TRP: wire.TRP{Op: wire.OpFin, PSN: accept.TRP.Ack, Ack: accept.TRP.PSN, Cookie: accept.Connect.Ext.Cookie}}
}

// rejectOf returns the reject of a request that no program has seen.
func rejectOf(request *Packet, why uint16) *Packet {
	return &Packet{Dev: request.Dev, Link: request.Link, Local: request.Local, Peer: request.Peer,
		TRP: wire.TRP{Op: wire.OpReject, Ack: request.TRP.PSN}, Connect: wire.TRPConnect{IRD: why}}
}

// request handles a connection request, in an IP packet of size bytes.
func (m *Manager) request(p *Packet, size int) {
	key := requestKey{p.Dev, p.Peer, p.TRP.PSN}
	if id := m.incoming[key]; id != nil {
		id.proof.heard(size, m.tokens.prove(p, m.net.Now()))
		m.retransmitted(id)
		return
	}
	if r := m.refused[key]; r != nil {
		r.proof.heard(size, m.tokens.prove(p, m.net.Now()))
		r.proof.answer(m, &r.request, r.reject)
		return
	}
	parent := m.listener(p.Local)
	if parent != nil && parent.Datagrams {
		parent = nil // it is not a listener for connections
	}
	switch {
	case parent == nil && m.numbers.isReserved(p.Local.Port()):
		return // the peer repeats the request
	case parent == nil:
		m.Stats.Refused++
		m.net.Send(rejectOf(p, InvalidService))
	case parent.queue.pending >= parent.queue.backlog: // the peer repeats the request
	case m.tokens.prove(p, m.net.Now()):
		m.newRequest(parent, key, p, proof{proved: true})
	case !parent.crowded():
		m.newRequest(parent, key, p, proof{received: size})
	default:
		m.Stats.Retried++
		m.net.Send(m.tokens.retry(p, p.TRP.PSN, m.net.Now()))
	}
}

// newRequest gives a listener a child with a connection from a new port number.
func (m *Manager) newRequest(parent *ID, key requestKey, p *Packet, f proof) {
	port, ok := m.numbers.free(nil, p.Local.Addr())
	if !ok {
		m.log.Warn("connection request dropped: no free UDP port number")
		return
	}
	if child := m.newChild(parent, p, func(child *ID) (Conn, error) { return m.net.Open(child, p.Dev, port, p.Peer) },
		f); child != nil {
		m.incoming[key], child.key = child, key
	}
}

// newChild gives a listener a child for a request, and announces it; nil if it can't.
func (m *Manager) newChild(parent *ID, p *Packet, open func(child *ID) (Conn, error), f proof) *ID {
	child := m.child(parent, p.Dev, p.Local, p.Peer)
	c, err := open(child)
	if err != nil {
		m.log.Warn("connection request dropped", "error", err)
		return nil
	}
	r := &p.Connect
	child.terms.Link, child.conn, child.proof = p.Link, c, f
	child.offered = request{isn: p.TRP.PSN, ird: r.IRD, ord: r.ORD, private: append([]byte(nil), r.PrivateData...),
		ext: r.Ext}
	if !m.announce(child) {
		c.Release()
		return nil
	}
	if !f.proved {
		child.countUnproved()
	}
	return child
}

// packet returns a packet of the handshake for id's peer.
func (id *ID) packet(t wire.TRP, c wire.TRPConnect) *Packet {
	return &Packet{Dev: id.dev, Link: id.terms.Link, Local: netip.AddrPortFrom(id.local.Addr(), id.conn.Port()),
		Peer: id.peer,
		TRP:  t, Connect: c, Conn: id.conn}
}
