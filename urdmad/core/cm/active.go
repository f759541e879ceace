package cm

import (
	"fmt"
	"syscall"

	"urdma/urdmad/core/clock"
	"urdma/wire"
)

// Connect sends the connection request; ESTABLISHED, REJECTED, UNREACHABLE or CONNECT_ERROR follows.
func (m *Manager) Connect(id *ID, qp QueuePair, p *Param) error {
	if id.Datagrams {
		return m.services.connect(id, p)
	}
	if err := id.in(routed); err != nil {
		return err
	}
	if err := connectable(qp); err != nil {
		return err
	}
	if err := m.fits(id, wire.OpRequest, p.PrivateData); err != nil {
		return err
	}
	if !id.sameHost {
		c, err := m.net.Open(id, id.dev, id.local.Port(), id.peer)
		if err != nil {
			return err
		}
		id.conn = c
	}
	id.keep(qp, p)
	id.offered = request{
		ird:     min(uint16(p.ResponderResources), m.maxDepth),
		ord:     min(uint16(p.InitiatorDepth), m.maxDepth),
		private: append([]byte(nil), p.PrivateData...),
	}
	id.state, id.tries, id.begun = connecting, 0, m.net.Now()
	m.net.Set(id.timer, m.net.Now()+retryAfter(0))
	if id.sameHost {
		m.net.Soon(func() { m.connectSameHost(id) })
	} else {
		m.sendRequest(id)
	}
	return nil
}

func connectable(qp QueuePair) error {
	if qp == nil || !qp.Connectable() {
		return fmt.Errorf("cm: no queue pair that can be connected, expected one of type RC or XRC in RESET or INIT: %w",
			einval)
	}
	return nil
}

// fits returns an error if private data are too long for a message of an id, on any path of the device: as
// in the kernel's rdma_cm, the limit also applies to peers on this host.
func (m *Manager) fits(id *ID, op wire.TRPOp, private []byte) error {
	if most := m.net.MaxPrivate(id.dev, op); len(private) > most {
		return fmt.Errorf("%d bytes of private data, expected at most %d: %w", len(private), most, einval)
	}
	return nil
}

func (m *Manager) sendRequest(id *ID) {
	ext := id.conn.Extension(id.terms.QP)
	ext.Echo = id.offered.token
	p := id.packet(wire.TRP{Op: wire.OpRequest, PSN: id.conn.ISN()}, wire.TRPConnect{
		IRD: id.offered.ird, ORD: id.offered.ord, PrivateData: id.offered.private, HasExt: true, Ext: ext})
	p.Connect.Padding = max(0, minRequest(p)-sizeOf(p))
	m.net.Send(p)
}

func (m *Manager) retryRequest(id *ID) {
	if !m.retry(id) {
		m.fail(id, EventUnreachable, syscall.ETIMEDOUT)
		return
	}
	if id.sameHost {
		m.connectSameHost(id)
	} else {
		m.sendRequest(id)
	}
}

// fail ends a handshake that did not succeed.
func (m *Manager) fail(id *ID, kind EventKind, why syscall.Errno) {
	m.abandon(id)
	m.deliver(id, Event{Kind: kind, Err: why})
}

// abandon releases everything that a failed handshake used.
func (m *Manager) abandon(id *ID) {
	m.net.Set(id.timer, clock.Never)
	if id.conn != nil {
		id.conn.Release()
		id.conn = nil
	}
	id.state = ended
}

// accepted handles the listener's accept, which comes from a new port number.
func (m *Manager) accepted(id *ID, p *Packet) {
	if !id.terms.QP.Connectable() { // the client has destroyed the queue pair in the meantime
		if p.Conn == nil {
			m.net.Send(FinOf(p))
		}
		m.fail(id, EventConnectError, syscall.EINVAL)
		return
	}
	m.net.Set(id.timer, clock.Never)
	r, s := &p.Connect, &id.terms
	s.IRD, s.ORD = id.offered.ird, min(id.offered.ord, r.IRD)
	s.PeerPort, s.PeerISN, s.Extension = p.Peer.Port(), p.TRP.PSN, r.Ext
	id.state = connected
	m.Stats.Established++
	id.conn.Start(id.terms)
	m.deliver(id, Event{Kind: EventEstablished, Param: id.inForce(r)})
}

// inForce returns the peer's parameters from its accept, as they are in force now.
func (id *ID) inForce(r *wire.TRPConnect) Param {
	return Param{ResponderResources: clamp8(id.terms.IRD), InitiatorDepth: clamp8(id.terms.ORD), QPN: uint32(r.Ext.QPN),
		PrivateData: r.PrivateData}
}

func clamp8(n uint16) uint8 { return uint8(min(n, 255)) }

// rejected handles a reject from the listener or from the peer's host.
func (m *Manager) rejected(id *ID, r *wire.TRPConnect) {
	why := r.IRD
	switch {
	case why != 0:
	case len(r.PrivateData) > 0:
		why = ByConsumer
	default: // peers other than urdmad send no reason
		why = InvalidService
	}
	m.abandon(id)
	m.deliver(id, Event{Kind: EventRejected, Err: syscall.ECONNREFUSED, Reason: why,
		Param: Param{PrivateData: r.PrivateData}})
}
