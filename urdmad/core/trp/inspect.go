package trp

import (
	"urdma/counters"
	"urdma/urdmad/core/reliable"
)

// State is a connection as it is now.
type State struct {
	State   string
	Payload int // bytes in a tagged segment
	PathMTU int // bytes of the largest IP packet that the path is known to take
	Traffic Traffic
	Path    reliable.Stats
}

// Traffic is what a connection has sent and received, in both layers' words.
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

// PastTraffic is the traffic on a port of connections that have left their queue
// pairs. With that of every queue pair's connection it is all there was.
func (s *Stack) PastTraffic(dev int) Traffic { return s.ports[dev].past }

// remember keeps the counts of a connection that leaves its queue pair.
func (p *Port) remember(c *Conn) {
	if s, ok := c.Inspect(); ok {
		traffic.Into(&p.past, &s.Traffic)
	}
}
