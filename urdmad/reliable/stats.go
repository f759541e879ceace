package reliable

// counters are the totals behind Stats.
type counters struct {
	sent, sentBytes, resent, lost, reordered     uint64
	tailProbes, timeouts, undone, needless       uint64
	delivered, held, duplicates, outside, probes uint64
	badAcks, refused                             uint64
}

// Stats is a snapshot of a connection for counters and logs. Counts are
// totals since Init.
type Stats struct {
	Sent, SentBytes uint64 // new segments, and their bytes
	Resent          uint64 // retransmissions of all causes
	FastLost        uint64 // segments found lost without a timeout's help
	TailProbes      uint64 // tail loss probes
	Timeouts        uint64 // retransmission timeouts
	Undone          uint64 // timeouts that turned out needless
	Needless        uint64 // events that showed a retransmission needless
	Reordered       uint64 // segments sent once that arrived behind later ones
	Probes          uint64 // zero window and keep-alive probes
	BadAcks         uint64 // packets with impossible acknowledgements
	Refused         uint64 // Sends beyond Window

	Delivered  uint64 // segments received, in order
	Held       uint64 // segments that arrived out of order
	Duplicates uint64
	Outside    uint64 // segments outside the window

	SRTT, RTTVar, MinRTT, RTO Time // MinRTT is 0 before the first sample
	Cwnd, InFlight            int  // segments
	Outstanding, Lost         int  // unacknowledged; waiting to be resent
	HeldNow                   int  // segments held until a gap closes
	PeerCredits               int  // new segments the peer still allows
	Credits                   int  // what we advertise
	Quick                     bool // acknowledging without delay
}

// Stats returns the counters and the present state.
func (c *Conn) Stats() Stats {
	n, t := &c.stats, &c.tx
	s := Stats{
		Sent: n.sent, SentBytes: n.sentBytes, Resent: n.resent,
		FastLost: n.lost, TailProbes: n.tailProbes, Timeouts: n.timeouts,
		Undone: n.undone, Needless: n.needless, Reordered: n.reordered,
		Probes: n.probes, BadAcks: n.badAcks, Refused: n.refused,
		Delivered: n.delivered, Held: n.held, Duplicates: n.duplicates, Outside: n.outside,
		SRTT: c.rtt.srtt, RTTVar: c.rtt.rttvar, RTO: c.rtt.timeout(),
		Cwnd: c.cc.window, InFlight: t.flight,
		Outstanding: t.outstanding(), Lost: t.nLost, HeldNow: c.rx.nHeld,
		PeerCredits: max(0, int(t.limit.Sub(t.next))),
		Credits:     c.rx.credits, Quick: c.ack.quick,
	}
	if base := c.rtt.base(); base != Never {
		s.MinRTT = base
	}
	return s
}
