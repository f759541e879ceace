package cm

import (
	"fmt"
	"syscall"

	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/handshake"
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
	if err := m.fits(id, handshake.Request, p.PrivateData); err != nil {
		return err
	}
	if !id.sameHost {
		c, err := m.net.Wire(id.dev).Open(id, id.dev, id.local.Port(), id.peer)
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
func (m *Manager) fits(id *ID, k handshake.Kind, private []byte) error {
	if most := m.net.Wire(id.dev).MaxPrivate(k); len(private) > most {
		return fmt.Errorf("%d bytes of private data, expected at most %d: %w", len(private), most, einval)
	}
	return nil
}

func (m *Manager) sendRequest(id *ID) {
	p := id.message(handshake.Request)
	p.IRD, p.ORD, p.PrivateData, p.Token = id.offered.ird, id.offered.ord, id.offered.private, id.offered.token
	p.RNRRetry, p.TrafficClass = id.terms.RNRRetry, id.options.trafficClass
	id.conn.Send(p)
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

// accepted handles the listener's reply, which comes from a new port number; false if the connection can't be
// made.
func (m *Manager) accepted(id *ID, p *Message) bool {
	switch {
	case p.Unusable != nil:
		m.fail(id, EventConnectError, syscall.EPROTO)
		return false
	case !id.terms.QP.Connectable(): // the client has destroyed the queue pair in the meantime
		m.fail(id, EventConnectError, syscall.EINVAL)
		return false
	}
	m.net.Set(id.timer, clock.Never)
	s := &id.terms
	s.IRD, s.ORD = id.offered.ird, min(id.offered.ord, p.IRD)
	s.PeerPort, s.PeerNumber, s.Offer = p.Peer.Port(), p.Number, p.Offer
	id.state = connected
	m.Stats.Established++
	id.conn.Start(id.terms)
	m.deliver(id, Event{Kind: EventEstablished, Param: id.inForce(p.QPN, p.PrivateData)})
	return true
}

// inForce returns the parameters of an established connection with a queue pair of the peer.
func (id *ID) inForce(qpn uint32, private []byte) Param {
	return Param{ResponderResources: clamp8(id.terms.IRD), InitiatorDepth: clamp8(id.terms.ORD), QPN: qpn,
		PrivateData: private}
}

func clamp8(n uint16) uint8 { return uint8(min(n, 255)) }

// rejected handles a reject from the listener or from the peer's host.
func (m *Manager) rejected(id *ID, why uint16, private []byte) {
	switch {
	case why != 0:
	case len(private) > 0:
		why = handshake.ByConsumer
	default: // peers other than urdmad send no reason
		why = handshake.InvalidService
	}
	m.abandon(id)
	m.deliver(id, Event{Kind: EventRejected, Err: syscall.ECONNREFUSED, Reason: why,
		Param: Param{PrivateData: private}})
}
