package cm

import (
	"errors"
	"syscall"

	"urdma/urdmad/engine"
	"urdma/verbs/abi"
	"urdma/wire"
)

// Connect sends the connection request; ESTABLISHED, REJECTED, UNREACHABLE or
// CONNECT_ERROR follows.
func (m *Manager) Connect(id *ID, qp *engine.QP, p *abi.CMParam) error {
	if id.state != routed || qp == nil || !qp.Connectable() {
		return einval
	}
	id.qp, id.rnrRetry = qp, p.RNRRetryCount
	id.offered = request{
		ird:     min(uint16(p.ResponderResources), m.maxReads),
		ord:     min(uint16(p.InitiatorDepth), m.maxReads),
		private: append([]byte(nil), p.Private()...),
	}
	id.state = connecting
	if id.onHost {
		id.tries = 0
		m.soon(func() { m.connectLocal(id) })
		return nil
	}
	c, err := m.e.NewConn(id.dev, id.local.port, id.peer.ip, id.peer.port)
	if err != nil {
		id.state = routed
		if errors.Is(err, engine.ErrNoUDPPort) {
			return syscall.EADDRINUSE
		}
		return syscall.ENOMEM
	}
	c.Owner, id.conn, id.tries = id, c, 0
	m.sendRequest(id)
	m.e.SetTimer(id.timer, m.e.Now()+retryAfter(0))
	return nil
}

func (m *Manager) sendRequest(id *ID) {
	c := id.conn
	p := engine.ControlPacket{Dev: id.dev, MAC: id.mac, Peer: id.peer.ip, LocalPort: c.LocalPort, PeerPort: id.peer.port,
		TRP: wire.TRP{Op: wire.OpRequest, PSN: c.LocalISN},
		Connect: wire.TRPConnect{IRD: id.offered.ird, ORD: id.offered.ord, PrivateData: id.offered.private,
			HasExt: true, Ext: m.e.Extension(c, id.qp)}}
	m.e.SendControl(&p)
}

func (m *Manager) retryRequest(id *ID) {
	id.tries++
	if spent(id.tries) >= m.giveUp {
		m.Stats.TimedOut++
		m.fail(id, abi.CMUnreachable, syscall.ETIMEDOUT)
		return
	}
	m.sendRequest(id)
	m.e.SetTimer(id.timer, m.e.Now()+retryAfter(id.tries))
}

// spent is how long n tries have taken together.
func spent(n int) (t engine.Time) {
	for i := range n {
		t += retryAfter(i)
	}
	return t
}

// fail ends a handshake that did not succeed.
func (m *Manager) fail(id *ID, kind uint32, why syscall.Errno) {
	m.e.SetTimer(id.timer, engine.Never)
	if id.conn != nil {
		id.conn.Release()
		id.conn = nil
	}
	id.state = ended
	m.event(id, kind, -int32(why), nil)
}

// accepted: the listener accepted our request, from a fresh port.
func (m *Manager) accepted(id *ID, f *wire.Frame, from addr, t *wire.TRP, r *wire.TRPConnect) {
	c := id.conn
	if !id.qp.Connectable() { // the client has destroyed it meanwhile
		m.notWanted(id.dev, f, t, r)
		m.fail(id, abi.CMConnectError, syscall.EINVAL)
		return
	}
	m.e.SetTimer(id.timer, engine.Never)
	c.PeerPort = from.port
	c.IRD, c.RNRRetry = id.offered.ird, id.rnrRetry
	c.ORD = min(id.offered.ord, r.IRD)
	id.state = connected
	m.Stats.Established++
	c.Start(engine.StartParams{QP: id.qp, MAC: id.mac, PeerISN: t.PSN, Peer: r.Ext, HasExt: r.HasExt})
	m.event(id, abi.CMEstablished, 0, func(ev *abi.CMEvent) { fillParam(&ev.Param, r, c) })
}

// fillParam describes what the peer said and what is in force now.
func fillParam(p *abi.CMParam, r *wire.TRPConnect, c *engine.Conn) {
	p.SetPrivate(r.PrivateData)
	p.ResponderResources, p.InitiatorDepth = clamp8(c.IRD), clamp8(c.ORD)
	p.QPNum = uint32(r.Ext.QPN)
}

func clamp8(n uint16) uint8 { return uint8(min(n, 255)) }

// wasRejected: the listener, or the host itself, said no.
func (m *Manager) wasRejected(id *ID, r *wire.TRPConnect) {
	m.e.SetTimer(id.timer, engine.Never)
	if id.conn != nil {
		id.conn.Release()
		id.conn = nil
	}
	id.state = ended
	m.event(id, abi.CMRejected, -int32(syscall.ECONNREFUSED), func(ev *abi.CMEvent) {
		ev.Param.SetPrivate(r.PrivateData)
	})
}
