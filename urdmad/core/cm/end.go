package cm

import (
	"syscall"

	"urdma/urdmad/core/clock"
)

// EndReason is the reason why a connection ended.
type EndReason uint8

// Reasons of Manager.Closed.
const (
	EndOrderly EndReason = iota // ended by one of the two sides, or by a Terminate
	EndSilent                   // the peer was silent for too long
)

// Established handles the first acknowledgement by the peer of a passive id that accepted.
func (m *Manager) Established(id *ID) {
	if id.state != accepting {
		return
	}
	m.net.Set(id.timer, clock.Never)
	id.state = connected
	id.uncountUnproved()
	m.Stats.Established++
	m.deliver(id, Event{Kind: EventEstablished, Param: id.inForce(id.offered.qpn, nil)})
}

// Closed handles the end of an id's connection.
func (m *Manager) Closed(id *ID, why EndReason) {
	m.net.Set(id.timer, clock.Never)
	was := id.state
	id.state = ended
	id.uncountUnproved()
	m.requestOver(id)
	m.Stats.Ended++
	var err syscall.Errno
	if why == EndSilent {
		err = syscall.ETIMEDOUT
	}
	switch {
	case was == connected:
		m.deliver(id, Event{Kind: EventDisconnected, Err: err})
		id.over = true
		m.enterTimeWait(id)
	case was == accepting && why == EndSilent:
		m.deliver(id, Event{Kind: EventUnreachable, Err: err})
	case was == accepting:
		m.deliver(id, Event{Kind: EventConnectError, Err: syscall.ECONNRESET})
	}
}

// Disconnect ends an id's connection gracefully; DISCONNECTED follows. For an unanswered request it sends a
// reject.
func (m *Manager) Disconnect(id *ID) error {
	switch id.state {
	case connected, accepting:
		if id.Datagrams {
			return nil // there is no connection to end
		}
		id.left = true
		m.net.Soon(func() {
			if id.conn != nil {
				id.conn.Disconnect()
			}
		})
		return nil
	case requested:
		m.reject(id, nil)
		return nil
	case ended:
		if !id.left {
			id.left = true
			m.enterTimeWait(id)
		}
		return nil
	}
	return id.in(connected, accepting, requested, ended)
}

// enterTimeWait makes TIMEWAIT_EXIT follow once the connection has ended and the program has disconnected
// too, as in the kernel, where both sides disconnect before either enters that state. It does so whatever
// kind of device is emulated: rdma_get_cm_event(3) promises the event for every connection, and programs
// keep an id until it arrives.
func (m *Manager) enterTimeWait(id *ID) {
	if id.over && id.left && !id.destroyed {
		m.net.Set(id.timer, m.net.Now()+id.timeWait())
	}
}
