package reliable

import "errors"

// ErrPeerDead: the peer was silent for DeathTimeout in spite of retransmissions, or was
// heard and acknowledged nothing for alivePatience times as long, or an idle peer
// answered no probe. It is final.
var ErrPeerDead = errors.New("reliable: peer is dead: no answer within the death timeout")

// deathTries is how many timeouts (or probes) in a row must go unanswered
// before silence counts as death. A process that was stopped for longer than
// DeathTimeout has tried nothing yet when it wakes.
const deathTries = 2

// alivePatience is how many times DeathTimeout a peer is waited for that is heard, but
// acknowledges nothing: what we send is lost, in a queue that others keep full, say.
const alivePatience = 4

// timers are those of retransmission. All count from base or lastSend, so
// sending costs no timer work; Deadline computes.
type timers struct {
	base       Time // of the timeout: last progress, or when this flight began
	lastSend   Time
	progress   Time // last progress, for death
	reorder    Time // when a late segment becomes lost; Never if none is late
	notBefore  Time // grace after we were away ourselves
	graced     bool
	tailProbed bool // the tail was probed and nothing has been heard since
	timeouts   int  // in a row
	spread     Time // what the timeout is late by (spreadOf)
}

// startTimers starts them for a new flight, or anew after progress.
func (c *Conn) startTimers(now Time) {
	c.tmr.base, c.tmr.progress = now, now
	c.tmr.graced, c.tmr.tailProbed, c.tmr.notBefore = false, false, 0
	c.tmr.timeouts, c.tmr.spread = 0, 0
	if c.tx.outstanding() == 0 {
		c.tmr.reorder = Never
		c.live.restart(now)
		c.tx.shrink(c.cfg.Rings)
	}
}

// tailTime is when the tail is probed.
func (c *Conn) tailTime() Time {
	if c.tmr.tailProbed || c.tmr.timeouts > 0 || c.tx.nLost > 0 || c.tx.flight == 0 {
		return Never
	}
	return max(c.tmr.base, c.tmr.lastSend) + c.rtt.probeTimeout()
}

// timeoutTime is when the head of what is outstanding is resent.
func (t *timers) timeoutTime(r *rtt) Time { return t.base + r.timeout() + t.spread }

// lossTime is the earliest of the retransmission timers.
func (c *Conn) lossTime() Time {
	if c.tx.outstanding() == 0 {
		return Never
	}
	t := min(c.tmr.timeoutTime(&c.rtt), c.tailTime(), c.tmr.reorder)
	return max(t, c.tmr.notBefore)
}

// Deadline returns the earliest time at which Tick or AckDue must be called,
// Never if nothing waits for time to pass. It may be past, or as close as a
// few microseconds: then it isn't worth going to sleep. It does not know what
// the caller could send or resend right now.
func (c *Conn) Deadline() Time {
	if c.live.dead {
		return Never
	}
	t := min(c.ack.due, c.lossTime(), c.probeTime())
	return min(t, c.deathTime())
}

// Tick runs the timers that have expired. What it finds due to be sent,
// Retransmit and ProbeDue then return. It returns ErrPeerDead when the peer
// is given up, and ever after.
func (c *Conn) Tick(now Time) error {
	if c.live.dead {
		return ErrPeerDead
	}
	if c.live.since == unknown {
		c.live.restart(now)
	}
	if now >= c.deathTime() {
		c.live.dead = true
		return ErrPeerDead
	}
	c.tickProbe(now)
	due := c.lossTime()
	if now < due || c.graceTaken(now, due) {
		return nil
	}
	c.tickLoss(now)
	return nil
}

// SetDeathTimeout changes Config.DeathTimeout.
func (c *Conn) SetDeathTimeout(t Time) {
	c.cfg.DeathTimeout = t
	c.cfg.MaxRTO = DefaultMaxRTO
	c.cfg.normalize()
}

// deathTime is when the peer is given up if nothing happens until then: when it has been
// silent for the time-out, or has acknowledged nothing for alivePatience times as long.
func (c *Conn) deathTime() Time {
	switch {
	case c.tx.outstanding() > 0 && c.tmr.timeouts >= deathTries:
		heard := min(c.live.since-c.tmr.progress, (alivePatience-1)*c.cfg.DeathTimeout)
		return c.tmr.progress + max(heard, 0) + c.cfg.DeathTimeout
	case c.tx.outstanding() == 0 && c.live.probes >= deathTries:
		return c.live.since + c.cfg.DeathTimeout
	}
	return Never
}

// graceTaken handles a timer found long after it expired: this process was
// away, and the acknowledgement may be in the receive queue behind what has
// been read so far. The timer waits a little longer, once.
func (c *Conn) graceTaken(now, due Time) bool {
	if c.tmr.graced || now-due <= c.cfg.MinRTO/2 {
		return false
	}
	c.tmr.graced = true
	c.tmr.notBefore = now + c.cfg.MinRTO/4
	return true
}

func (c *Conn) tickLoss(now Time) {
	c.tmr.graced = false
	switch {
	case now >= c.tmr.timeoutTime(&c.rtt):
		c.timeOut(now)
	case now >= c.tmr.reorder:
		c.detectLost(now)
	case now >= c.tailTime():
		c.probeTail(now)
	}
}

// probeTail has the last segment resent, once (RFC 8985 section 7): the
// answer shows by SACK, or by acknowledging, what is missing, long before the
// timeout.
func (c *Conn) probeTail(now Time) {
	t := &c.tx
	t.probe, t.hasProbe = t.psnOf(t.segs[t.head()].prev), true
	if !t.probe.Before(t.limit) {
		t.probe = t.una // the peer has no room for the last one
	}
	c.tmr.tailProbed = true
	c.tmr.base = now
	c.stats.TailProbes++
}

// timeOut is the retransmission timeout: only the head is resent. Whether the
// rest was lost too, the answer tells; until it is known, the congestion
// window is down to the minimum.
func (c *Conn) timeOut(now Time) {
	t := &c.tx
	c.forgetSacks()
	t.probe, t.hasProbe = t.una, true
	c.cc.endDrain()
	if !c.loss.timedOut {
		c.loss.timedOut, c.loss.recover = true, t.next
		c.loss.firstAt, c.loss.oldNewest = t.order, c.loss.newest
		c.loss.oldCwnd, c.loss.oldThresh = c.cc.window, c.cc.thresh
		c.cc.halve()
	}
	c.cc.collapse()
	c.rtt.backOff()
	c.tmr.timeouts++
	c.tmr.base, c.tmr.spread = now, spreadOf(c.rtt.timeout(), uint32(c.cfg.LocalISN)+t.order)
	c.tmr.tailProbed = true
	c.stats.Timeouts++
}

// spreadOf is by how much a repeated timeout is lengthened, up to a quarter of it:
// connections that lost their segments at once, or whose timeouts are in step with a
// queue that others fill, would else meet the same full queue each time. x differs
// between connections and between their transmissions.
func spreadOf(timeout Time, x uint32) Time {
	x *= 0x9e3779b1 // Knuth's multiplicative hash
	return timeout * Time(x>>24) / 1024
}

// forgetSacks handles a peer that reported the head as received and yet never
// acknowledged it: no report of it counts any more (RFC 2018 section 8).
func (c *Conn) forgetSacks() {
	t := &c.tx
	if !t.sacked.has(t.una) {
		return
	}
	for psn := t.una; psn != t.next; psn = psn.Add(1) {
		if t.sacked.has(psn) {
			t.sacked.remove(psn)
			t.nSacked--
			t.lost.add(psn)
			t.nLost++
		}
	}
}

// Timeout is how long to wait for the answer to a packet before it counts as lost.
func (c *Conn) Timeout() Time { return c.rtt.timeout() }

// Stalled is for how long nothing was acknowledged though something waits for it and was
// resent; 0 if that is not so.
func (c *Conn) Stalled(now Time) Time {
	if c.tx.outstanding() == 0 || c.tmr.timeouts < deathTries {
		return 0
	}
	return now - c.tmr.progress
}

// TimeoutsInRow is how many retransmission timeouts have passed since anything
// was acknowledged.
func (c *Conn) TimeoutsInRow() int { return c.tmr.timeouts }
