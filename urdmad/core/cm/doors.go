package cm

import (
	"syscall"

	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/places"
	"urdma/wire"
)

// Where requests come by connections, over TCP, the kernel has to hold a socket for
// a port number: here called a door. An id has doors from when it is bound, so that
// a number which a socket of another program has is refused then, and that a
// request which comes before the id listens waits for it.

// openDoors has requests come in on every device that an id hears.
func (m *Manager) openDoors(id *ID) error {
	if id.Datagrams {
		return nil
	}
	for dev, a := range m.addrs {
		if !id.hears(a) {
			continue
		}
		if err := m.net.Listen(id, dev); err != nil {
			m.shut(id, dev)
			return err
		}
	}
	id.doors = true
	return nil
}

func (m *Manager) closeDoors(id *ID) {
	if id.doors {
		id.doors = false
		delete(m.leaving, id)
		m.shut(id, len(m.addrs))
	}
}

// shut closes an id's doors on devices before one.
func (m *Manager) shut(id *ID, before int) {
	for dev, a := range m.addrs[:before] {
		if id.hears(a) {
			m.net.Unlisten(id, dev)
		}
	}
}

// leaveDoors closes a listener's doors once its owner's next listener is no longer
// expected: see listenerGrace.
func (m *Manager) leaveDoors(id *ID) {
	if id.doors {
		m.leaving[id] = struct{}{}
		m.net.Set(id.timer, m.net.Now()+listenerGrace)
	}
}

// closedPerTurn bounds the doors that one call of Gone closes, each with a system call.
const closedPerTurn = 64

// Gone: an owner has destroyed its ids and creates no more. A call closes a part of the
// doors that they left; more says that some are left to the next turn's call.
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
		m.closeDoors(id)
	}
	return false
}

const (
	// maxWaiting bounds the requests that wait, each of which may be a socket.
	maxWaiting = 1024
	// waitingCheck is how often each looks for a listener with room.
	waitingCheck = 10 * clock.Millisecond
)

// arrival is a request that came by a connection, and may wait for a listener with room.
type arrival struct {
	p     *Packet
	until clock.Time
	place *places.Place // nil before it waits
	timer *clock.Timer
}

// arrivedRequest gives the listener a child with the connection by which the request
// came. It waits until some time where a request in a packet would be dropped, to
// come again, unless its peer goes.
func (m *Manager) arrivedRequest(p *Packet, until clock.Time) {
	w := &arrival{p: p, until: until}
	w.timer = clock.NewTimer(func() { m.seat(w) })
	m.seat(w)
}

// seat gives a request its listener, or has it wait.
func (m *Manager) seat(w *arrival) {
	p := w.p
	parent := m.listener(p.Local)
	if parent != nil && parent.Datagrams {
		parent = nil // it takes no connections
	}
	switch {
	case m.net.Withdrawn(p.Conn):
		w.place.Leave()
		p.Conn.Release()
	case parent != nil && parent.queue.pending < parent.queue.backlog:
		w.place.Leave()
		m.newChild(parent, p, func(child *ID) (Conn, error) { return m.net.Adopt(child, p.Conn) }, proof{proved: true})
	case parent == nil && !m.numbers.isReserved(p.Local.Port()), m.net.Now() >= w.until:
		w.place.Leave()
		m.turnAway(w)
	default:
		if w.place == nil {
			w.place = m.waiting.Take(p.Peer.Addr(), func() { m.turnAway(w) })
		}
		m.net.Set(w.timer, m.net.Now()+waitingCheck)
	}
}

// turnAway rejects a request that found no listener with room.
func (m *Manager) turnAway(w *arrival) {
	m.net.Set(w.timer, clock.Never)
	m.Stats.Refused++
	m.net.Send(&Packet{Dev: w.p.Dev, TRP: wire.TRP{Op: wire.OpReject}, Connect: wire.TRPConnect{IRD: InvalidService}, Conn: w.p.Conn})
}

// Refused: a request found nobody, or no answer in time.
func (m *Manager) Refused(id *ID, errno syscall.Errno) {
	if id == nil || id.state != connecting {
		return
	}
	if errno == syscall.ECONNREFUSED || errno == syscall.ECONNRESET {
		m.rejected(id, &wire.TRPConnect{IRD: InvalidService})
		return
	}
	m.fail(id, EventUnreachable, errno)
}
