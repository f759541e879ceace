package roce

import "urdma/urdmad/core/clock"

// State is a connection as it is now.
type State struct {
	State            string
	Payload          int // bytes in a packet
	PathMTU          int // bytes of the largest IP packet that the path is known to take
	InFlight, Window int // packets
	SRTT, Timeout    clock.Time
}

// Inspect returns a connection's state; ok is false before the way to the peer is known.
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
