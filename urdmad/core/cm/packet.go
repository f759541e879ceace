package cm

import (
	"net/netip"

	"urdma/urdmad/core/handshake"
)

// Receive handles a message. c is the connection on which a request arrived, or whose request a message answers; nil
// if there is none. A request without a connection, and a message of an id with datagrams, is a packet, which may be
// lost, repeated or forged. Receive returns false for a reply whose connection can't be made.
func (m *Manager) Receive(c Conn, p *Message) bool {
	if p.Unusable != nil {
		m.log.Info("handshake that no connection can come of", "from", p.Peer.String(), "error", p.Unusable)
	}
	switch {
	case p.Kind == handshake.Request && c != nil:
		m.arrivedRequest(c.(Arrived), p, m.net.Now()+m.timeout)
	case p.Kind == handshake.Request:
		m.request(p)
	case c != nil:
		return m.answered(c.Owner(), p)
	case p.Kind == handshake.Reply:
		return false
	default:
		m.services.receive(p, false)
	}
	return true
}

// answered handles the answer to an id's request.
func (m *Manager) answered(id *ID, p *Message) bool {
	switch {
	case id.state != connecting:
	case p.Kind == handshake.Reply:
		return m.accepted(id, p)
	case p.Kind == handshake.Retry:
		m.retried(id, p.Token)
	case p.Kind == handshake.Pending:
		id.alive = m.net.Now()
	case p.Kind == handshake.Reject:
		m.rejected(id, p.Reason, p.PrivateData)
	}
	return true
}

// rejectOf returns the reject of a request that no program has seen.
func rejectOf(request *Message, why uint16) *Message {
	return &Message{Kind: handshake.Reject, Dev: request.Dev, Link: request.Link, Local: request.Local,
		Peer: request.Peer, Answers: request.Number, Reason: why}
}

// request handles a connection request.
func (m *Manager) request(p *Message) {
	if p.Unusable != nil {
		m.net.Wire(p.Dev).Send(rejectOf(p, handshake.Unsupported))
		return
	}
	key := requestKey{p.Dev, p.Peer, p.Number}
	if id := m.incoming[key]; id != nil {
		id.proof.heard(p.Allowance, m.tokens.prove(p, m.net.Now()))
		m.retransmitted(id)
		return
	}
	if r := m.refused[key]; r != nil {
		r.proof.heard(p.Allowance, m.tokens.prove(p, m.net.Now()))
		r.proof.answer(m, m.net.Wire(p.Dev), p.Number, &r.reject)
		return
	}
	parent, later := m.admit(p.Local, false)
	switch {
	case later: // the peer repeats the request
	case parent == nil:
		m.Stats.Refused++
		m.net.Wire(p.Dev).Send(rejectOf(p, handshake.InvalidService))
	case m.tokens.prove(p, m.net.Now()):
		m.newRequest(parent, key, p, proof{proved: true})
	case !parent.crowded():
		_, end := m.net.Wire(p.Dev).Size(p)
		m.newRequest(parent, key, p, proof{allowed: p.Allowance - end})
	default:
		m.Stats.Retried++
		m.net.Wire(p.Dev).Send(m.tokens.retry(p, p.Number, m.net.Now()))
	}
}

// newRequest gives a listener a child with a connection from a new port number.
func (m *Manager) newRequest(parent *ID, key requestKey, p *Message, f proof) {
	port, ok := m.numbers.free(nil, p.Local.Addr())
	if !ok {
		m.log.Warn("connection request dropped: no free UDP port number")
		return
	}
	open := func(child *ID) (Conn, error) { return m.net.Wire(p.Dev).Open(child, p.Dev, port, p.Peer) }
	if child := m.newChild(parent, p, open, f); child != nil {
		m.incoming[key], child.key = child, key
	}
}

// newChild gives a listener a child for a request, and announces it; nil if it can't.
func (m *Manager) newChild(parent *ID, p *Message, open func(child *ID) (Conn, error), f proof) *ID {
	child := m.child(parent, p.Dev, p.Local, p.Peer)
	c, err := open(child)
	if err != nil {
		m.log.Warn("connection request dropped", "error", err)
		return nil
	}
	t := &child.terms
	child.conn, child.proof = c, f
	t.Link, t.PeerPort, t.PeerNumber, t.Offer, t.Passive = p.Link, p.Peer.Port(), p.Number, p.Offer, true
	child.offered = request{number: p.Number, ird: p.IRD, ord: p.ORD, private: p.PrivateData, qpn: p.QPN}
	if !m.announce(child) {
		c.Release()
		return nil
	}
	if !f.proved {
		child.countUnproved()
	}
	return child
}

// message returns a message from id's connection to its peer.
func (id *ID) message(k handshake.Kind) *Message {
	return &Message{Kind: k, Dev: id.dev, Link: id.terms.Link, Local: netip.AddrPortFrom(id.local.Addr(), id.conn.Port()),
		Peer: id.peer}
}
