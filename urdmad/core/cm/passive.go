package cm

import (
	"fmt"
	"net/netip"
	"syscall"

	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/handshake"
)

// defaultBacklog is the kernel's backlog for the value 0 (max_backlog of rdma_ucm).
const defaultBacklog = 1024

// Listen makes a bound id accept connection requests. An unbound id is first bound to all addresses and a
// free port number.
func (m *Manager) Listen(id *ID, backlog int) error {
	if id.state == idle {
		if err := m.Bind(id, netip.AddrPortFrom(netip.IPv4Unspecified(), 0)); err != nil {
			return err
		}
	}
	if err := id.in(bound); err != nil {
		return err
	}
	if id.options.reuseAddr && m.numbers.taken(id, id.local, false) {
		return syscall.EADDRINUSE
	}
	if backlog <= 0 {
		backlog = defaultBacklog
	}
	id.queue.backlog, id.state = backlog, listening
	return nil
}

// listener returns the id that listens for connections, or for requests of ids with datagrams.
func (m *Manager) listener(a netip.AddrPort, datagrams bool) *ID {
	for _, id := range m.numbers.ids[a.Port()] {
		if id.state == listening && id.hears(a.Addr()) && id.Datagrams == datagrams {
			return id
		}
	}
	return nil
}

// admit returns the listener for a request. later says that the request has to come again, or to wait: the
// listener's backlog is full, or a listener is expected.
func (m *Manager) admit(a netip.AddrPort, datagrams bool) (parent *ID, later bool) {
	if parent = m.listener(a, datagrams); parent == nil {
		return nil, m.numbers.isReserved(a.Port())
	}
	return parent, parent.queue.pending >= parent.queue.backlog
}

// hears reports whether requests for one of our addresses belong to a listener. A listener at the IPv4
// wildcard address also gets those for ::1, which is another name for this machine.
func (id *ID) hears(a netip.Addr) bool {
	own := id.local.Addr()
	return own == a || isAny(own) && (own.Is4() == a.Is4() || own.Is4() && a.IsLoopback() || own.Is6() &&
		!id.options.afOnly)
}

// child creates a passive id.
func (m *Manager) child(parent *ID, dev int, local, peer netip.AddrPort) *ID {
	id := m.Create(parent.Owner, parent.Channel)
	id.state, id.dev, id.local, id.peer, id.parent = requested, dev, local, peer, parent
	return id
}

// announce delivers CONNECT_REQUEST; false if the listener's owner refuses the child.
func (m *Manager) announce(child *ID) bool {
	if !child.Owner.Adopt(child) {
		return false
	}
	child.parent.queue.pending++
	m.Stats.Requested++
	o := &child.offered
	// The peer's ORD is what we must accept, and the reverse.
	m.deliver(child.parent, Event{Kind: EventConnectRequest, Child: child, Param: Param{PrivateData: o.private,
		ResponderResources: clamp8(o.ord), InitiatorDepth: clamp8(o.ird), QPN: o.qpn}})
	return true
}

// decided records that the request no longer counts against the listener's backlog.
func (id *ID) decided() { id.parent.queue.pending-- }

// retransmitted handles a copy of the request for which id was created. Either the client has not answered
// yet, or our answer was lost.
func (m *Manager) retransmitted(id *ID) {
	if id.proof.proved {
		id.uncountUnproved()
	}
	switch id.state {
	case accepting:
		m.sendAccept(id)
	case requested:
		m.stillWaits(id)
	}
}

// stillWaits tells a requester that its request has arrived and that the program has not answered yet.
func (m *Manager) stillWaits(id *ID) {
	id.proof.askForProof(m, id.message(handshake.Retry), id.offered.number)
}

// Accept accepts a connection request; ESTABLISHED follows when the peer's first acknowledgement arrives.
func (m *Manager) Accept(id *ID, qp QueuePair, p *Param) error {
	if id.Datagrams {
		return m.services.accept(id, p)
	}
	if err := id.in(requested); err != nil {
		return err
	}
	if err := connectable(qp); err != nil {
		return err
	}
	if id.sameHost && id.peerID.terms.QP.Number() == qp.Number() {
		return fmt.Errorf("cm: queue pair %06x can't be both ends: %w", qp.Number(), einval)
	}
	if err := m.fits(id, handshake.Reply, p.PrivateData); err != nil {
		return err
	}
	id.decided()
	t := &id.terms
	id.keep(qp, p)
	t.IRD = min(uint16(p.ResponderResources), m.maxDepth)
	t.ORD = min(uint16(p.InitiatorDepth), m.maxDepth, id.offered.ird)
	id.reply = append([]byte(nil), p.PrivateData...)
	id.state = accepting
	m.Stats.Accepted++
	if id.sameHost {
		m.acceptSameHost(id)
	} else {
		m.acceptRemote(id)
	}
	return nil
}

// acceptRemote opens the connection, which is established by the peer's first packet, and sends the accept.
func (m *Manager) acceptRemote(id *ID) {
	id.tries, id.begun = 0, m.net.Now()
	if id.conn.Start(id.terms); id.state != accepting { // the connection has ended at once
		return
	}
	m.sendAccept(id)
	m.net.Set(id.timer, m.net.Now()+retryAfter(0))
}

func (m *Manager) sendAccept(id *ID) {
	p := id.message(handshake.Reply)
	p.Answers, p.IRD, p.ORD, p.PrivateData = id.offered.number, id.terms.IRD, id.terms.ORD, id.reply
	p.RNRRetry = id.terms.RNRRetry
	id.proof.answer(m, id.conn, id.offered.number, p)
}

func (m *Manager) retryAccept(id *ID) {
	if m.retry(id) {
		m.sendAccept(id)
		return
	}
	id.state = ended
	id.uncountUnproved()
	m.deliver(id, Event{Kind: EventUnreachable, Err: syscall.ETIMEDOUT})
	id.conn.Abort()
}

// Reject refuses a connection request with private data.
func (m *Manager) Reject(id *ID, private []byte) error {
	if err := id.in(requested); err != nil {
		return err
	}
	k := handshake.Reject
	if id.Datagrams {
		k = handshake.Resolved
	}
	if err := m.fits(id, k, private); err != nil {
		return err
	}
	m.reject(id, private)
	return nil
}

func (m *Manager) reject(id *ID, private []byte) {
	if id.Datagrams {
		m.services.reject(id, private)
		return
	}
	id.decided()
	id.uncountUnproved()
	m.Stats.Rejected++
	id.state = ended
	private = append([]byte(nil), private...)
	if id.sameHost {
		m.rejectSameHost(id, private)
		return
	}
	p := id.rejectMessage(handshake.ByConsumer, private)
	id.proof.answer(m, id.conn, id.offered.number, p)
	if m.incoming[id.key] == id {
		delete(m.incoming, id.key)
		m.remember(id.key, &refusal{*p, id.proof}, m.net.Now()+m.timeout)
	}
	id.conn.Release()
	id.conn = nil
}

// rejectMessage returns a reject, whose source is the port number of the request, as without a listener.
func (id *ID) rejectMessage(why uint16, private []byte) *Message {
	return &Message{Kind: handshake.Reject, Dev: id.dev, Link: id.terms.Link, Local: id.local, Peer: id.peer,
		Answers: id.offered.number, Reason: why, PrivateData: private}
}

// requestOver handles the end of a passive id that had accepted. If all accepts were lost, its peer may
// still repeat the request, which must not count as a new one. A peer that got its accept long ago repeats
// nothing, and is not remembered.
func (m *Manager) requestOver(id *ID) {
	if m.incoming[id.key] != id {
		return
	}
	delete(m.incoming, id.key)
	m.remember(id.key, &refusal{*id.rejectMessage(handshake.Stale, nil), id.proof}, id.begun+m.timeout)
}

// maxRefused bounds the memory for rejects during a flood of requests.
const maxRefused = 4096

// refusal is a reject that may have to be repeated.
type refusal struct {
	reject Message
	proof  proof
}

// remember keeps a reject for as long as the peer may repeat its request.
func (m *Manager) remember(key requestKey, reject *refusal, until clock.Time) {
	if len(m.refused) >= maxRefused || until <= m.net.Now() {
		return
	}
	m.refused[key] = reject
	m.after(until-m.net.Now(), func() { delete(m.refused, key) })
}
