package mpa

import (
	"urdma/counters"
	"urdma/urdmad/core/clock"

	"golang.org/x/sys/unix"
)

// State is the present state of a connection; TCP's part comes from TCP_INFO (tcp(7)).
type State struct {
	State   string
	Payload int // bytes in a tagged segment
	PathMTU int

	InFlight, Window int // TCP segments
	SRTT, RTTVar     clock.Time
	MinRTT, Timeout  clock.Time
	Silent           clock.Time // time since the peer was last heard
	Traffic          Traffic
}

// Traffic counts what a connection has sent and received.
type Traffic struct {
	Segments  uint64 `counter:"segments"`  // DDP segments sent
	Bytes     uint64 `counter:"bytes"`     // bytes of the stream sent
	Delivered uint64 `counter:"delivered"` // DDP segments received
	Resent    uint64 `counter:"resent"`    // TCP segments resent
}

var traffic = counters.NewSum[Traffic]("counter")

// Inspect returns a connection's state; ok is false before it was started.
func (c *Conn) Inspect() (s State, ok bool) {
	if c.state < connOpen {
		return s, false
	}
	s = State{State: stateNames[c.state], Payload: c.stream.TaggedPayload(),
		Traffic: Traffic{Segments: c.out.mark, Bytes: c.out.total, Delivered: c.in.delivered, Resent: c.resent}}
	if c.fd < 0 {
		return s, true
	}
	if t, err := unix.GetsockoptTCPInfo(c.fd, unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
		s.PathMTU, s.InFlight, s.Window, s.Traffic.Resent = int(t.Pmtu), int(t.Unacked), int(t.Snd_cwnd),
			uint64(t.Total_retrans)
		s.SRTT, s.RTTVar = clock.Time(t.Rtt)*clock.Microsecond, clock.Time(t.Rttvar)*clock.Microsecond
		s.MinRTT, s.Timeout = clock.Time(t.Min_rtt)*clock.Microsecond, clock.Time(t.Rto)*clock.Microsecond
		s.Silent = clock.Time(min(t.Last_data_recv, t.Last_ack_recv)) * clock.Millisecond
	}
	return s, true
}

// PastTraffic is the traffic of a device's connections that have left their queue pairs. Added to the
// traffic of each queue pair's connection it gives the device's total.
func (s *Stack) PastTraffic(dev int) Traffic {
	if t := s.past[dev]; t != nil {
		return *t
	}
	return Traffic{}
}

// remember adds the counters of a connection that leaves its queue pair to the device's past traffic.
func (s *Stack) remember(c *Conn) {
	if s.past[c.Dev] == nil {
		s.past[c.Dev] = new(Traffic)
	}
	if now, ok := c.Inspect(); ok {
		traffic.Into(s.past[c.Dev], &now.Traffic)
	}
}
