package cm

import (
	"syscall"

	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/handshake"
	"urdma/urdmad/core/places"
)

// Over TCP, connection requests arrive as TCP connections, so a port number needs a listening socket of the
// kernel. An id has listening sockets from its binding on: so a number that another program's socket uses
// is refused then, and a request that arrives before the id listens waits for it.

// openSockets opens a listening socket on every device whose requests the id accepts.
func (m *Manager) openSockets(id *ID) error {
	if id.Datagrams {
		return nil
	}
	for dev, a := range m.addrs {
		if !id.hears(a) {
			continue
		}
		if err := m.net.Wire(dev).Listen(id, dev); err != nil {
			m.closeSocketsBelow(id, dev)
			return err
		}
	}
	id.sockets = true
	return nil
}

func (m *Manager) closeSockets(id *ID) {
	if id.sockets {
		id.sockets = false
		delete(m.leaving, id)
		m.closeSocketsBelow(id, len(m.addrs))
	}
}

// closeSocketsBelow closes an id's listening sockets on the devices with numbers below end.
func (m *Manager) closeSocketsBelow(id *ID, end int) {
	for dev, a := range m.addrs[:end] {
		if id.hears(a) {
			m.net.Wire(dev).Unlisten(id, dev)
		}
	}
}

// closeSocketsLater closes a listener's sockets after listenerGrace, when its owner's next listener is no
// longer expected.
func (m *Manager) closeSocketsLater(id *ID) {
	if id.sockets {
		m.leaving[id] = struct{}{}
		m.net.Set(id.timer, m.net.Now()+listenerGrace)
	}
}

// closedPerTurn bounds the sockets that one call of Gone closes, each with a system call.
const closedPerTurn = 64

// Gone is called after an owner has destroyed its ids and creates no more. A call closes some of the
// sockets that they left; more says that the next turn must call it again.
func (m *Manager) Gone(o Owner) (more bool) {
	closed := 0
	for id := range m.leaving {
		if id.Owner != o {
			continue
		}
		if closed == closedPerTurn {
			return true
		}
		closed++
		m.net.Set(id.timer, clock.Never)
		m.closeSockets(id)
	}
	return false
}

const (
	// maxWaiting bounds the requests that wait, each of which may occupy a socket.
	maxWaiting = 1024
	// waitingCheck is how often each waiting request looks for a listener with room.
	waitingCheck = 10 * clock.Millisecond
)

// arrival is a request that arrived as a connection, and may wait for a listener with room.
type arrival struct {
	c     Arrived
	p     *Message
	until clock.Time
	place *places.Place // nil before it waits
	timer *clock.Timer
}

// arrivedRequest gives the listener a child with the connection of the request. If a packet with such a
// request would be dropped and repeated, this request waits until a time, unless its peer disconnects.
func (m *Manager) arrivedRequest(c Arrived, p *Message, until clock.Time) {
	w := &arrival{c: c, p: p, until: until}
	w.timer = clock.NewTimer(func() { m.assign(w) })
	m.assign(w)
}

// assign passes a request to its listener, or makes it wait.
func (m *Manager) assign(w *arrival) {
	p := w.p
	parent, later := m.admit(p.Local, false)
	switch {
	case w.c.Withdrawn():
		w.place.Leave()
		w.c.Release()
	case parent != nil && !later:
		w.place.Leave()
		m.newChild(parent, p, func(child *ID) (Conn, error) { return w.c, w.c.Adopt(child) }, proof{proved: true})
	case !later, m.net.Now() >= w.until:
		w.place.Leave()
		m.rejectWaiting(w)
	default:
		if w.place == nil {
			w.place = m.waiting.Take(p.Peer.Addr(), func() { m.rejectWaiting(w) })
		}
		m.net.Set(w.timer, m.net.Now()+waitingCheck)
	}
}

// rejectWaiting rejects a request that found no listener with room.
func (m *Manager) rejectWaiting(w *arrival) {
	m.net.Set(w.timer, clock.Never)
	m.Stats.Refused++
	w.c.Send(rejectOf(w.p, handshake.InvalidService))
}

// Refused handles a request that nobody accepted, or that was not answered in time.
func (m *Manager) Refused(id *ID, errno syscall.Errno) {
	if id == nil || id.state != connecting {
		return
	}
	if errno == syscall.ECONNREFUSED || errno == syscall.ECONNRESET {
		m.rejected(id, handshake.InvalidService, nil)
		return
	}
	m.fail(id, EventUnreachable, errno)
}
