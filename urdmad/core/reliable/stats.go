package reliable

// Counters are totals since Init.
type Counters struct {
	Sent       uint64 `counter:"segments"`    // new segments
	SentBytes  uint64 `counter:"bytes"`       // bytes of new segments
	Resent     uint64 `counter:"resent"`      // retransmissions for any reason
	FastLost   uint64 `counter:"lost"`        // segments found lost without a timeout
	TailProbes uint64 `counter:"tail_probes"` // tail loss probes
	Timeouts   uint64 `counter:"timeouts"`    // retransmission timeouts
	Undone     uint64 // timeouts found to be needless
	Needless   uint64 `counter:"needless"` // events that showed that a retransmission was needless
	Reordered  uint64 // segments sent once that arrived after later ones
	Probes     uint64 // zero window and keep-alive probes
	BadAcks    uint64 // packets with impossible acknowledgements
	Refused    uint64 // calls of Send beyond Window

	Delivered  uint64 `counter:"delivered"` // segments received, in order
	Held       uint64 `counter:"reordered"` // segments that arrived out of order
	Duplicates uint64 `counter:"duplicates"`
	Outside    uint64 `counter:"outside_window"` // segments outside the window
}

// Stats is a snapshot of a connection for counters and logs.
type Stats struct {
	Counters

	SRTT, RTTVar, MinRTT, RTO Time // MinRTT is 0 before the first sample
	Cwnd, InFlight            int  // segments
	Outstanding, Lost         int  // unacknowledged; waiting to be resent
	HeldNow                   int  // segments held until a gap closes
	PeerCredits               int  // new segments the peer still allows
	Credits                   int  // credits that we advertise
	Quick                     bool // acknowledging without delay
	// Heard is when the peer was last heard, or when its window was last closed, if that is later; -1:
	// never.
	Heard Time
}

// Stats returns the counters and the present state.
func (c *Conn) Stats() Stats {
	t := &c.tx
	s := Stats{
		Counters: c.stats,
		SRTT:     c.rtt.srtt, RTTVar: c.rtt.rttvar, RTO: c.rtt.timeout(),
		Cwnd: c.cc.window, InFlight: t.flight,
		Outstanding: t.outstanding(), Lost: t.nLost, HeldNow: c.rx.nHeld,
		PeerCredits: max(0, int(t.limit.Sub(t.next))),
		Credits:     c.rx.credits, Quick: !c.ack.On(), Heard: c.live.since,
	}
	if base := c.rtt.base(); base != Never {
		s.MinRTT = base
	}
	return s
}
