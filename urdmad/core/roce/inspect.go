package roce

import "urdma/urdmad/core/clock"

// State is the present state of a connection.
type State struct {
	State            string
	Payload          int // bytes in a packet
	PathMTU          int // largest IP packet that the path is known to carry, in bytes
	InFlight, Window int // packets
	SRTT, Timeout    clock.Time
}

// Inspect returns a connection's state; ok is false before the path to the peer is known.
func (c *Conn) Inspect() (s State, ok bool) {
	if !c.open {
		return s, false
	}
	s = State{State: "open", Payload: int(c.mtu), PathMTU: c.path.MTU()}
	switch {
	case c.closed:
		s.State = "closed"
	case c.waits():
		s.State = "connecting"
	}
	s.InFlight, s.Window = c.req.UnderWay()
	s.SRTT, s.Timeout = c.req.Times()
	return s, true
}
