package cm

import (
	"syscall"

	"urdma/urdmad/core/clock"
)

// EndReason says how a connection ended.
type EndReason uint8

// Reasons of Manager.Closed.
const (
	EndOrderly EndReason = iota // by one of the two sides, or by a Terminate
	EndSilent                   // the peer was silent for too long
)

// Established: the peer of a passive id acknowledged our accept.
func (m *Manager) Established(id *ID) {
	if id.state != accepting {
		return
	}
	m.net.Set(id.timer, clock.Never)
	id.state = connected
	id.uncountUnproved()
	m.Stats.Established++
	m.deliver(id, Event{Kind: EventEstablished, Param: Param{ResponderResources: clamp8(id.terms.IRD),
		InitiatorDepth: clamp8(id.terms.ORD), QPN: uint32(id.offered.ext.QPN)}})
}

// Closed: the connection of an id is over.
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

// Disconnect ends an id's connection in good order; DISCONNECTED follows. On a
// request that was not answered it is a reject.
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

// enterTimeWait has TIMEWAIT_EXIT follow once the connection is over and the
// program has said that it is done with it, as in the kernel's, where both sides
// disconnect before either enters that state. It does so whatever the device is
// shown as: rdma_get_cm_event(3) promises it of every connection, and programs
// keep an id until it comes.
func (m *Manager) enterTimeWait(id *ID) {
	if id.over && id.left && !id.destroyed {
		m.net.Set(id.timer, m.net.Now()+id.timeWait())
	}
}
