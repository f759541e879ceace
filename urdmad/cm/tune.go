package cm

import "urdma/urdmad/engine"

// SetGiveUp changes how long handshakes are tried, those under way included.
// On the worker's thread.
func (m *Manager) SetGiveUp(t engine.Time) { m.giveUp = t }
