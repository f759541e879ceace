package cm

import (
	"net/netip"
	"syscall"

	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/handshake"
)

// This file connects two ids of one urdmad: the messages of the handshake are function calls.

// connectSameHost passes the request to the listener. Once the listener's program has it, nothing is
// repeated.
func (m *Manager) connectSameHost(id *ID) {
	if id.state != connecting || id.peerID != nil {
		return
	}
	parent, later := m.admit(id.peer, false)
	if parent == nil && m.numbers.elsewhere(id.peer.Port()) {
		m.connectSibling(id)
		return
	}
	if later {
		return // the request is repeated, as it would be on a network
	}
	m.net.Set(id.timer, clock.Never)
	if parent == nil {
		m.Stats.Refused++
		m.rejected(id, handshake.InvalidService, nil)
		return
	}
	child := m.child(parent, id.dev, id.peer, id.local)
	child.sameHost, child.peerID, id.peerID = true, id, child
	child.offered = id.offered
	child.offered.qpn = id.terms.QP.Number()
	if !m.announce(child) {
		m.rejected(id, handshake.InvalidService, nil)
		return
	}
	m.net.Set(id.timer, id.begun+max(m.timeout, mostPatience))
}

// connectSibling continues with a listener of another worker of this urdmad, as if it were on another host.
func (m *Manager) connectSibling(id *ID) {
	m.becomeSibling(id)
	if m.fits(id, handshake.Request, id.offered.private) != nil {
		m.fail(id, EventConnectError, syscall.EINVAL)
		return
	}
	c, err := m.net.Wire(id.dev).Open(id, id.dev, id.local.Port(), id.peer)
	if err != nil {
		m.fail(id, EventConnectError, syscall.EADDRINUSE)
		return
	}
	id.conn = c
	m.sendRequest(id)
}

// becomeSibling makes an id treat its peer as an id of another worker, reached through the device that has
// the peer's address: another device may use another protocol. Packets can't have a loopback address.
func (m *Manager) becomeSibling(id *ID) {
	if dev, err := m.deviceOf(id.peer.Addr()); err == nil && dev >= 0 {
		id.dev = dev
	}
	own := m.addrs[id.dev]
	id.sameHost, id.terms.Link = false, m.net.Home(id.dev)
	id.local = netip.AddrPortFrom(own, id.local.Port())
	if isAny(id.peer.Addr()) {
		id.peer = netip.AddrPortFrom(own, id.peer.Port())
	}
}

// acceptSameHost passes the accept to the active side: both sides are connected.
func (m *Manager) acceptSameHost(id *ID) {
	peer := id.peerID
	if peer.state != connecting || !peer.terms.QP.Connectable() {
		id.state = ended
		m.net.Soon(func() {
			m.deliver(id, Event{Kind: EventConnectError, Err: syscall.ECONNRESET})
			peer.ifConnecting(func() { m.fail(peer, EventConnectError, syscall.EINVAL) })
		})
		return
	}
	m.net.Set(peer.timer, clock.Never)
	peer.terms.IRD, peer.terms.ORD = peer.offered.ird, min(peer.offered.ord, id.terms.IRD)
	peer.conn, id.conn = m.net.Join(peer.end(), id.end())
	id.conn.Start(id.terms)
	peer.conn.Start(peer.terms)
	id.state, peer.state = connected, connected
	m.Stats.Established++
	m.net.Soon(func() {
		m.deliver(peer, Event{Kind: EventEstablished, Param: peer.inForce(id.terms.QP.Number(), id.reply)})
		m.deliver(id, Event{Kind: EventEstablished})
	})
}

func (id *ID) end() End { return End{ID: id, Dev: id.dev, Local: id.local, Peer: id.peer} }

// rejectSameHost passes the reject to the active side, if it still waits.
func (m *Manager) rejectSameHost(id *ID, private []byte) {
	peer := id.peerID
	m.net.Soon(func() {
		peer.ifConnecting(func() { m.rejected(peer, handshake.ByConsumer, private) })
	})
}

// ifConnecting calls fn, which passes an answer to the active side, if that still waits.
func (id *ID) ifConnecting(fn func()) {
	if id.state == connecting {
		fn()
	}
}
