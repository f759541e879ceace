package cm

import (
	"syscall"

	"urdma/urdmad/clock"
	"urdma/urdmad/engine"
	"urdma/verbs/abi"
	"urdma/wire"
)

const defaultBacklog = 128

// Listen makes a bound id take connection requests. An id that is not bound is
// bound to all addresses and a free port number.
func (m *Manager) Listen(id *ID, backlog int) error {
	if id.state == idle {
		if err := m.Bind(id, abi.Addr{}); err != nil {
			return err
		}
	}
	if id.state != bound {
		return einval
	}
	if backlog <= 0 {
		backlog = defaultBacklog
	}
	id.backlog, id.state = backlog, listening
	return nil
}

func (m *Manager) listener(a addr) *ID {
	for _, id := range m.ports[a.port] {
		if id.state == listening && (id.local.ip == a.ip || id.local.ip == (wire.IPv4{})) {
			return id
		}
	}
	return nil
}

// Programs that serve one connection after another destroy the listening id and
// create the next (perftest does), and a peer's request may fall in between.
// For this long a port number that had a listener does not refuse; the peer
// asks again. ib_write_bw sleeps a second in between.
const listenerGrace = engine.Time(2e9)

// listenerLeft begins the grace, and forgets those that are over.
func (m *Manager) listenerLeft(port uint16) {
	for p, at := range m.lately {
		if m.e.Now()-at > listenerGrace {
			delete(m.lately, p)
		}
	}
	m.lately[port] = m.e.Now()
}

// returning reports whether a listener may come back to a port number.
func (m *Manager) returning(port uint16) bool {
	at, ok := m.lately[port]
	return ok && m.e.Now()-at <= listenerGrace
}

// Packet is engine.Handler's: a request, accept or reject.
func (m *Manager) Packet(dev int, f *wire.Frame, t *wire.TRP, body []byte) {
	var r wire.TRPConnect
	if err := r.Parse(body); err != nil {
		m.log.Debug("bad handshake packet", "from", f.SrcIP.String(), "error", err)
		return
	}
	from := addr{f.SrcIP, f.SrcPort}
	if r.HasExt && r.Ext.Check() != nil {
		m.log.Info("handshake offers impossible values", "from", f.SrcIP.String(), "error", r.Ext.Check())
		switch t.Op {
		case wire.OpRequest:
			m.rejectPacket(dev, f.Src, from, f.DstPort, t.PSN, nil)
		case wire.OpAccept:
			m.impossible(dev, f, t, &r)
		}
		return
	}
	if t.Op == wire.OpRequest {
		m.request(dev, f, from, t, &r)
		return
	}
	c := m.answers(dev, f, t)
	if c == nil {
		if t.Op == wire.OpAccept {
			m.notWanted(dev, f, t, &r)
		}
		return
	}
	id, _ := c.Owner.(*ID)
	switch {
	case id == nil:
	case id.state == connecting && t.Op == wire.OpAccept:
		m.accepted(id, f, from, t, &r)
	case id.state == connecting && t.Op == wire.OpReject:
		m.wasRejected(id, &r)
	case id.state == connected && t.Op == wire.OpAccept && c.PeerPort == from.port:
		c.AcknowledgeNow() // our first acknowledgement was lost
	}
}

// answers returns the connection whose request an accept or reject answers, or
// nil.
func (m *Manager) answers(dev int, f *wire.Frame, t *wire.TRP) *engine.Conn {
	c := m.e.ConnAt(dev, f.DstPort)
	if c == nil || c.PeerIP != f.SrcIP || t.Ack != c.LocalISN {
		return nil
	}
	return c
}

// impossible ends a connection whose peer accepted it with values that can't be
// kept to (docs/WIRE.md chapter 3).
func (m *Manager) impossible(dev int, f *wire.Frame, t *wire.TRP, r *wire.TRPConnect) {
	c := m.answers(dev, f, t)
	if c == nil {
		return
	}
	if id, _ := c.Owner.(*ID); id != nil && id.state == connecting {
		m.notWanted(dev, f, t, r)
		m.fail(id, abi.CMConnectError, syscall.EPROTO)
	}
}

// notWanted answers the accept of a connection that nobody here wants any more
// with a fin (docs/WIRE.md chapter 3).
func (m *Manager) notWanted(dev int, f *wire.Frame, t *wire.TRP, r *wire.TRPConnect) {
	m.e.SendControl(&engine.ControlPacket{Dev: dev, MAC: f.Src, Peer: f.SrcIP, LocalPort: f.DstPort, PeerPort: f.SrcPort,
		TRP: wire.TRP{Op: wire.OpFin, PSN: t.Ack, Ack: t.PSN, Cookie: r.Ext.Cookie}, Extended: r.HasExt})
}

// request takes a connection request from the wire.
func (m *Manager) request(dev int, f *wire.Frame, from addr, t *wire.TRP, r *wire.TRPConnect) {
	key := requestKey{dev, from, t.PSN}
	if known := m.incoming[key]; known != nil {
		m.again(known)
		return
	}
	if no, ok := m.refused[key]; ok {
		m.rejectPacket(dev, no.mac, from, no.local, t.PSN, no.private)
		return
	}
	parent := m.listener(addr{f.DstIP, f.DstPort})
	if parent == nil && m.returning(f.DstPort) {
		return
	}
	if parent == nil {
		m.Stats.Refused++
		m.rejectPacket(dev, f.Src, from, f.DstPort, t.PSN, nil)
		return
	}
	if parent.pending >= parent.backlog {
		return // the peer asks again
	}
	local, ok := m.freePort(f.DstIP)
	if !ok {
		m.log.Warn("connection request dropped: no free UDP port number")
		return
	}
	c, err := m.e.NewConn(dev, local, from.ip, from.port)
	if err != nil {
		m.log.Warn("connection request dropped", "error", err)
		return
	}
	child := m.child(parent, dev, addr{f.DstIP, f.DstPort}, from)
	child.mac, child.conn = f.Src, c
	c.Owner = child
	child.offered = request{isn: t.PSN, ird: r.IRD, ord: r.ORD, private: append([]byte(nil), r.PrivateData...),
		ext: r.Ext, hasExt: r.HasExt}
	if !m.announce(child) {
		c.Release()
		return
	}
	m.incoming[key], child.key, child.asked = child, key, true
}

func (m *Manager) child(parent *ID, dev int, local, peer addr) *ID {
	id := m.Create(parent.Owner, parent.Channel, 0, parent.PS)
	id.state, id.dev, id.local, id.peer, id.parent = requested, dev, local, peer, parent
	return id
}

// announce delivers CONNECT_REQUEST.
func (m *Manager) announce(child *ID) bool {
	h, ok := child.Owner.Adopt(child)
	if !ok {
		return false
	}
	child.Handle = h
	child.parent.pending++
	m.Stats.Requested++
	o := &child.offered
	m.event(child.parent, abi.CMConnectRequest, 0, func(ev *abi.CMEvent) {
		ev.Child, ev.Device = h, uint32(child.dev)
		ev.Local, ev.Peer = child.local.abi(), child.peer.abi()
		ev.Param.SetPrivate(o.private)
		// The peer's ORD is what we must be able to serve, and the reverse.
		ev.Param.ResponderResources, ev.Param.InitiatorDepth = clamp8(o.ord), clamp8(o.ird)
		ev.Param.QPNum = uint32(o.ext.QPN)
	})
	return true
}

// answered: the request no longer counts against the listener's backlog.
func (m *Manager) answered(id *ID) {
	if id.parent != nil && id.state == requested {
		id.parent.pending--
	}
}

// again answers a request that came again, because our answer was lost.
func (m *Manager) again(id *ID) {
	if id.state == accepting {
		m.sendAccept(id)
	}
}

// Accept accepts a connection request; ESTABLISHED follows when the peer's
// first acknowledgement arrives.
func (m *Manager) Accept(id *ID, qp *engine.QP, p *abi.CMParam) error {
	if id.state != requested || qp == nil || !qp.Connectable() {
		return einval
	}
	m.answered(id)
	id.qp, id.state, id.rnrRetry = qp, accepting, p.RNRRetryCount
	ird := min(uint16(p.ResponderResources), m.maxReads)
	ord := min(uint16(p.InitiatorDepth), m.maxReads, id.offered.ird)
	id.answer = wire.TRPConnect{IRD: ird, ORD: ord, PrivateData: append([]byte(nil), p.Private()...)}
	m.Stats.Accepted++
	if id.onHost {
		m.acceptLocal(id)
		return nil
	}
	c := id.conn
	c.IRD, c.ORD, c.RNRRetry = ird, ord, id.rnrRetry
	if id.offered.hasExt {
		id.answer.HasExt, id.answer.Ext = true, m.e.Extension(c, qp)
	}
	c.Start(engine.StartParams{QP: qp, MAC: id.mac, PeerISN: id.offered.isn, Peer: id.offered.ext,
		HasExt: id.offered.hasExt, Passive: true})
	id.tries = 0
	m.sendAccept(id)
	m.e.SetTimer(id.timer, m.e.Now()+retryAfter(0))
	return nil
}

func (m *Manager) sendAccept(id *ID) {
	c := id.conn
	m.e.SendControl(&engine.ControlPacket{Dev: id.dev, MAC: id.mac, Peer: id.peer.ip, LocalPort: c.LocalPort,
		PeerPort: id.peer.port, TRP: wire.TRP{Op: wire.OpAccept, PSN: c.LocalISN, Ack: id.offered.isn},
		Connect: id.answer})
}

func (m *Manager) retryAccept(id *ID) {
	id.tries++
	if spent(id.tries) >= m.giveUp {
		m.Stats.TimedOut++
		id.state = ended
		m.event(id, abi.CMUnreachable, -int32(syscall.ETIMEDOUT), nil)
		id.conn.Abort()
		return
	}
	m.sendAccept(id)
	m.e.SetTimer(id.timer, m.e.Now()+retryAfter(id.tries))
}

// Reject refuses a connection request with private data.
func (m *Manager) Reject(id *ID, private []byte) error {
	if id.state != requested {
		return einval
	}
	m.refuse(id, private)
	return nil
}

func (m *Manager) refuse(id *ID, private []byte) {
	m.answered(id)
	m.Stats.Rejected++
	id.state = ended
	id.answer.PrivateData = append([]byte(nil), private...)
	if id.onHost {
		m.show(id.dev, id.local, id.peer, wire.OpReject, id.answer, nil)
		peer := id.peerID
		m.soon(func() { m.localAnswer(peer, func() { m.wasRejected(peer, &id.answer) }) })
		return
	}
	m.rejectPacket(id.dev, id.mac, id.peer, id.local.port, id.offered.isn, private)
	m.remember(id.key, refusal{id.mac, id.local.port, id.answer.PrivateData})
	m.forget(id)
	id.conn.Release()
	id.conn = nil
}

// maxRefusals bounds what a flood of requests can make us remember.
const maxRefusals = 4096

// remember keeps a refusal for as long as the peer may ask again.
func (m *Manager) remember(key requestKey, no refusal) {
	if len(m.refused) >= maxRefusals {
		return
	}
	m.refused[key] = no
	m.e.SetTimer(clock.NewTimer(func() { delete(m.refused, key) }), m.e.Now()+m.giveUp)
}

func (m *Manager) rejectPacket(dev int, mac wire.MAC, to addr, from uint16, isn wire.PSN, private []byte) {
	m.e.SendControl(&engine.ControlPacket{Dev: dev, MAC: mac, Peer: to.ip, LocalPort: from, PeerPort: to.port,
		TRP: wire.TRP{Op: wire.OpReject, Ack: isn}, Connect: wire.TRPConnect{PrivateData: private}})
}
