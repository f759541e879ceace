package qpconnect

import "urdma/urdmad/core/clock"

func (m *Manager) connected(v *Pair) {
	v.state, v.tries = Connected, 0
	m.net.Set(v.timer, clock.Never)
	m.satisfied(v)
	m.Stats.Established++
}

// Established handles the peer's first packet on a connection that we accepted.
func (m *Manager) Established(v *Pair) {
	if v.state == Accepting {
		m.connected(v)
	}
}

// lose waits for the failure of a queue pair whose peer has ended the connection while sends were in
// progress. As on InfiniBand nobody answers them, not even if the peer connects again.
func (m *Manager) lose(v *Pair) {
	v.state = Lost
	m.net.Await(v)
}

// Closed handles the end of a pair's connection. again says that its queue pair is still in RTR or a later
// state, and looks for its peer again.
func (m *Manager) Closed(v *Pair, again bool) {
	v.conn = nil
	m.Stats.Ended++
	switch {
	case v.state == Stopped:
	case again && v.QP.SendsBegun():
		m.lose(v)
	case again:
		m.begin(v)
	default:
		m.Stop(v)
	}
}
