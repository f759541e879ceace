package reliable

// unknown is the time of an event that has not happened.
const unknown Time = -1

// liveness watches a connection without outstanding segments, for two conditions: the peer's window is
// closed while we want to send, or the peer may have died.
type liveness struct {
	since   Time // last valid packet from the peer, or start of watching
	asked   Time // last probe, or start of the reason to probe
	probes  int  // unanswered probes
	stalls  uint // probes of this closed window, for backoff
	blocked bool // the caller wants to send and has no credits
	due     bool // a probe should go
	dead    bool
	awaited bool // the peer owes an answer
}

// restart starts watching now.
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

// probeTime returns when the next probe is due. With outstanding segments none is: retransmissions act as
// probes.
func (c *Conn) probeTime() Time {
	v := &c.live
	switch {
	case c.tx.outstanding() > 0:
		return Never
	case v.blocked:
		return v.asked + min(c.rtt.timeout()<<min(v.stalls, 10), c.cfg.MaxRTO)
	case c.keepAlive() == 0:
		return Never
	case v.since == unknown:
		return 0 // the first Tick sets the times
	case v.probes == 0:
		return v.since + c.keepAlive()
	}
	// The remaining tries share the time left until death.
	return v.asked + (c.cfg.DeathTimeout-c.keepAlive())/4
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

// ProbeDue reports once that a probe should be sent: an acknowledgement without data, with the AR flag set,
// which the peer answers at once.
func (c *Conn) ProbeDue(now Time) bool {
	c.tickProbe(now)
	due := c.live.due
	c.live.due = false
	return due
}
