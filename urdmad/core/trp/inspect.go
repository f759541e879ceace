package trp

import (
	"urdma/counters"
	"urdma/urdmad/core/reliable"
)

// State is the present state of a connection.
type State struct {
	State   string
	Payload int // bytes in a tagged segment
	PathMTU int // largest IP packet that the path is known to carry, in bytes
	Traffic Traffic
	Path    reliable.Stats
}

// Traffic counts the packets that a connection has sent and received, in both layers.
type Traffic struct {
	Conn ConnStats
	Rel  reliable.Counters
}

var traffic = counters.NewSum[Traffic]("counter")

// Inspect returns a connection's state; ok is false before it was started.
func (c *Conn) Inspect() (s State, ok bool) {
	if c.state == connOpening {
		return s, false
	}
	s = State{State: stateNames[c.state], Payload: c.stream.TaggedPayload(), PathMTU: c.path.MTU(), Path: c.rel.Stats()}
	s.Traffic = Traffic{c.Stats, s.Path.Counters}
	return s, true
}

// PastTraffic is the traffic of a port's connections that have left their queue pairs. Added to the traffic
// of each queue pair's connection it gives the port's total.
func (s *Stack) PastTraffic(dev int) Traffic { return s.ports[dev].past }

// remember adds the counters of a connection that leaves its queue pair to the port's past traffic.
func (p *Port) remember(c *Conn) {
	if s, ok := c.Inspect(); ok {
		traffic.Into(&p.past, &s.Traffic)
	}
}
