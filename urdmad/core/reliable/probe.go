package reliable

// unknown is the time of what has not happened.
const unknown Time = -1

// liveness watches a connection with nothing outstanding: a closed window of
// the peer's that we want to send into, and a peer that may have died.
type liveness struct {
	since   Time // last valid packet from the peer, or when watching began
	asked   Time // last probe, or when the reason to probe began
	probes  int  // unanswered
	stalls  uint // probes of this closed window, for backing off
	blocked bool // the caller wants to send and credits forbid it
	due     bool // a probe should go
	dead    bool
}

// restart begins watching now.
func (v *liveness) restart(now Time) {
	v.since, v.asked, v.stalls = now, now, 0
}

func (c *Conn) hear(now Time) {
	c.live.since = now
	c.live.probes = 0
	c.live.due = c.live.due && c.live.blocked
}

func (c *Conn) block(now Time) {
	if !c.live.blocked {
		c.live.blocked = true
		c.live.restart(now)
	}
}

func (c *Conn) unblock() {
	c.live.blocked = false
	c.live.due = false
}

// probeTime is when the next probe is due. With segments outstanding, retransmission probes as well.
func (c *Conn) probeTime() Time {
	v := &c.live
	switch {
	case c.tx.outstanding() > 0:
		return Never
	case v.blocked:
		return v.asked + min(c.rtt.timeout()<<min(v.stalls, 10), c.cfg.MaxRTO)
	case c.cfg.KeepAlive == 0:
		return Never
	case v.since == unknown:
		return 0 // the first Tick starts the clock
	case v.probes == 0:
		return v.since + c.cfg.KeepAlive
	}
	// The remaining tries share the time that is left until death.
	return v.asked + (c.cfg.DeathTimeout-c.cfg.KeepAlive)/4
}

func (c *Conn) tickProbe(now Time) {
	if now < c.probeTime() {
		return
	}
	c.live.due = true
	c.live.asked = now
	c.live.probes++
	c.live.stalls++
	c.stats.Probes++
}

// ProbeDue reports, once, that a probe should go: a pure acknowledgement with
// the AR flag set, which the peer answers at once with its own.
func (c *Conn) ProbeDue(now Time) bool {
	c.tickProbe(now)
	due := c.live.due
	c.live.due = false
	return due
}
