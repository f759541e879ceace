package qpconnect

// meet joins a queue pair with its peer in this urdmad, if that one waits for
// it.
func (m *Manager) meet(v *Pair) {
	o := m.pairs[v.Peer.QPN]
	if v.state != Waiting || o == nil || o.state != Waiting || o.Local != v.Peer || o.Peer != v.Local {
		return
	}
	for _, p := range []*Pair{v, o} {
		m.connected(p)
	}
	m.net.Join(v, o)
}
