package cm

import (
	"syscall"

	"urdma/urdmad/clock"
	"urdma/urdmad/engine"
	"urdma/verbs/abi"
	"urdma/wire"
)

// This file connects two ids of one urdmad: the handshake's messages become
// calls, and the connection the same-host shortcut.

// connectLocal is the request's arrival.
func (m *Manager) connectLocal(id *ID) {
	if id.state != connecting || id.gone {
		return
	}
	parent := m.listener(id.peer)
	if parent == nil && m.returning(id.peer.port) || parent != nil && parent.pending >= parent.backlog {
		m.retryLocal(id)
		return
	}
	m.show(id.dev, id.local, id.peer, wire.OpRequest, wire.TRPConnect{IRD: id.offered.ird, ORD: id.offered.ord, PrivateData: id.offered.private}, id.qp)
	if parent == nil {
		m.Stats.Refused++
		m.show(id.dev, id.peer, id.local, wire.OpReject, wire.TRPConnect{}, nil)
		m.wasRejected(id, &wire.TRPConnect{})
		return
	}
	child := m.child(parent, id.dev, id.peer, id.local)
	child.onHost, child.peerID, id.peerID = true, id, child
	child.offered = id.offered
	child.offered.ext.QPN = wire.QPN(id.qp.QPN)
	if !m.announce(child) {
		m.wasRejected(id, &wire.TRPConnect{})
	}
}

// retryLocal asks again later, as a request on the wire would be repeated.
func (m *Manager) retryLocal(id *ID) {
	if id.tries++; spent(id.tries) >= m.giveUp {
		m.Stats.TimedOut++
		m.fail(id, abi.CMUnreachable, syscall.ETIMEDOUT)
		return
	}
	m.e.SetTimer(clock.NewTimer(func() { m.connectLocal(id) }), m.e.Now()+retryAfter(id.tries))
}

// acceptLocal is the accept's arrival: both sides are connected.
func (m *Manager) acceptLocal(id *ID) {
	peer := id.peerID
	if peer.gone || peer.state != connecting || !peer.qp.Connectable() {
		id.state = ended
		m.soon(func() {
			m.event(id, abi.CMConnectError, -int32(syscall.ECONNRESET), nil)
			m.localAnswer(peer, func() { m.fail(peer, abi.CMConnectError, syscall.EINVAL) })
		})
		return
	}
	m.show(id.dev, id.local, id.peer, wire.OpAccept, id.answer, id.qp)
	a := m.e.NewLocalConn(peer.dev, peer.local.ip, peer.peer.ip, peer.local.port, peer.peer.port)
	b := m.e.NewLocalConn(id.dev, id.local.ip, id.peer.ip, id.local.port, id.peer.port)
	engine.Join(a, b)
	a.Owner, peer.conn, b.Owner, id.conn = peer, a, id, b
	a.IRD, a.ORD = peer.offered.ird, min(peer.offered.ord, id.answer.IRD)
	b.IRD, b.ORD = id.answer.IRD, id.answer.ORD
	a.RNRRetry, b.RNRRetry = peer.rnrRetry, id.rnrRetry
	b.Start(engine.StartParams{QP: id.qp})
	a.Start(engine.StartParams{QP: peer.qp})
	id.state, peer.state = connected, connected
	m.Stats.Established++
	answer := id.answer
	answer.Ext.QPN = wire.QPN(id.qp.QPN)
	m.soon(func() {
		m.event(peer, abi.CMEstablished, 0, func(ev *abi.CMEvent) { fillParam(&ev.Param, &answer, a) })
		m.event(id, abi.CMEstablished, 0, nil)
	})
}

// localAnswer carries an answer to the id that asked, if it still waits.
func (m *Manager) localAnswer(id *ID, fn func()) {
	if id != nil && !id.gone && id.state == connecting {
		fn()
	}
}

// show lets who captures frames see a message of the handshake.
func (m *Manager) show(dev int, from, to addr, op wire.TRPOp, c wire.TRPConnect, qp *engine.QP) {
	if m.e.Tapped() {
		m.e.ShowControl(&engine.LocalControl{Dev: dev, From: from.ip, To: to.ip, FromPort: from.port, ToPort: to.port, Op: op, Connect: c}, qp)
	}
}
