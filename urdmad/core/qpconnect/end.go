package qpconnect

import "urdma/urdmad/core/clock"

func (m *Manager) connected(v *Pair) {
	v.state, v.tries = Connected, 0
	m.net.Set(v.timer, clock.Never)
	m.satisfied(v)
	m.Stats.Established++
}

// Established: the peer's first packet has come to a connection that we
// accepted.
func (m *Manager) Established(v *Pair) {
	if v.state == Accepting {
		m.connected(v)
	}
}

// lose waits for the end of a queue pair whose peer has left amidst its sends. As
// on InfiniBand nobody answers them, a new life of the peer's included.
func (m *Manager) lose(v *Pair) {
	v.state = Lost
	m.net.Await(v)
}

// Closed: the connection of a pair is over. again says that its queue pair is in
// RTR or beyond still, and looks for its peer anew.
func (m *Manager) Closed(v *Pair, again bool) {
	v.conn = nil
	m.Stats.Ended++
	switch {
	case v.state == Stopped:
	case again && v.QP.Amidst():
		m.lose(v)
	case again:
		m.begin(v)
	default:
		m.Stop(v)
	}
}
