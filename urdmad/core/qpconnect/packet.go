package qpconnect

import (
	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/cm"
	"urdma/urdmad/core/handshake"
)

// Request handles a request by queue pair number.
func (m *Manager) Request(p *cm.Message) {
	x := &p.ByNumber
	v := m.pairs[x.Target]
	if v == nil || v.sameHost || v.state == Lost || v.Peer != (End{p.Peer.Addr(), p.QPN}) ||
		p.Local.Addr() != v.Local.Addr || p.Unusable != nil {
		m.Stats.Ignored++ // the peer repeats the request
		return
	}
	switch {
	case v.state == Resolving: // a request must not decide by which link the peer is reached
		v.heard = x.Cookie
		if v.tries > 1 {
			v.tries = 0
			m.net.Set(v.timer, m.net.Now()+firstRetry)
		}
	case v.state == Connecting:
		m.asked(v, p)
	case p.Number != v.peerNumber:
		m.requestWhileConnected(v, p)
	case v.state == Accepting:
		m.sendAccept(v)
	}
}

// asked handles a request while we send requests too (docs/WIRE.md chapter 9, rules 3 and 4).
func (m *Manager) asked(v *Pair, p *cm.Message) {
	x := &p.ByNumber
	v.heard = x.Cookie
	if v.Local.compare(v.Peer) < 0 || x.Echo != v.conn.Cookie() {
		m.ask(v)
		return
	}
	v.link, v.peer, v.peerNumber, v.answered = p.Link, p.Peer, p.Number, x.Cookie
	m.Stats.Accepted++
	v.state, v.tries = Accepting, 0
	m.start(v, p, true)
	m.sendAccept(v)
	m.net.Set(v.timer, m.net.Now()+retryAfter(0))
}

func (m *Manager) start(v *Pair, p *cm.Message, passive bool) {
	v.conn.Start(cm.Start{QP: v.QP, IRD: v.IRD, ORD: p.IRD, Link: v.link, PeerPort: p.Peer.Port(),
		PeerNumber: p.Number, Offer: p.Offer, Passive: passive}, &p.ByNumber)
}

func (m *Manager) sendAccept(v *Pair) {
	v.send(&cm.Message{Kind: handshake.Reply, Link: v.link, Peer: v.peer, Answers: v.peerNumber}, v.conn.Cookie(),
		v.answered)
}

func (m *Manager) retryAccept(v *Pair) {
	spent := clock.Time(0)
	for i := range v.tries + 1 {
		spent += retryAfter(i)
	}
	if spent >= m.timeout {
		v.conn.Abort()
		return
	}
	v.tries++
	m.sendAccept(v)
	m.net.Set(v.timer, m.net.Now()+retryAfter(v.tries))
}

// requestWhileConnected handles a request of a connected peer: it is an old copy, or the peer starts anew
// (rule 6), maybe with another Ethernet address.
func (m *Manager) requestWhileConnected(v *Pair, p *cm.Message) {
	x := &p.ByNumber
	if v.challenge != 0 && x.Echo == v.challenge {
		v.conn.Abort()
		return
	}
	if v.challenge == 0 {
		v.challenge = max(m.net.Random(), 1)
	}
	m.Stats.Challenged++
	m.sendRequest(v, p.Link, v.challenge, x.Cookie)
}

// Accept handles an accept that arrived at the UDP port number of a pair's connection. It returns false if
// the sender should be told that nobody wants the connection.
func (m *Manager) Accept(v *Pair, p *cm.Message) bool {
	x := &p.ByNumber
	if v.state == Stopped || v.conn == nil || v.conn.Port() != p.Local.Port() {
		return false
	}
	if p.Answers != v.conn.Number() || v.Peer != (End{p.Peer.Addr(), p.QPN}) || p.Unusable != nil {
		return true // an old copy, or from a stranger
	}
	switch {
	case v.state == Connecting && x.Echo == v.conn.Cookie():
		m.accepted(v, p)
	case v.state == Connected && p.Peer != v.peer && v.challenge != 0 && x.Echo == v.challenge:
		v.conn.Abort()
		return false
	}
	return true
}

func (m *Manager) accepted(v *Pair, p *cm.Message) {
	v.peer, v.peerNumber = p.Peer, p.Number
	m.connected(v)
	m.start(v, p, false)
}
