package reliable

import "errors"

// ErrPeerDead: the peer was silent for DeathTimeout despite retransmissions, or was heard but acknowledged
// nothing for alivePatience times as long, or was idle and answered no probe. The error is permanent.
var ErrPeerDead = errors.New("reliable: peer is dead: no answer within the death timeout")

// deathTries is how many consecutive timeouts (or probes) must be unanswered before the peer counts as
// dead. A process that was stopped for longer than DeathTimeout has sent none yet when it continues.
const deathTries = 2

// alivePatience is the multiple of DeathTimeout after which a peer is given up that is heard but
// acknowledges nothing: our segments are lost, for example in a queue that others keep full.
const alivePatience = 4

// timers are the retransmission timers. All count from base or lastSend, so sending sets no timer; Deadline
// computes the earliest.
type timers struct {
	base       Time // start of the timeout: last progress, or start of this flight
	lastSend   Time
	progress   Time // last progress, for the death timeout
	reorder    Time // when a late segment becomes lost; Never if none is late
	notBefore  Time // no timer expires earlier, because our process was suspended
	graced     bool
	tailProbed bool // a tail loss probe was sent, and nothing heard since
	timeouts   int  // consecutive timeouts
	spread     Time // random extension of the timeout (spreadOf)
}

// startTimers starts the timers for a new flight, or again after progress.
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

// tailTime returns when the tail loss probe is due.
func (c *Conn) tailTime() Time {
	if c.tmr.tailProbed || c.tmr.timeouts > 0 || c.tx.nLost > 0 || c.tx.flight == 0 {
		return Never
	}
	return max(c.tmr.base, c.tmr.lastSend) + c.rtt.probeTimeout()
}

// timeoutTime returns when the first unacknowledged segment is resent.
func (t *timers) timeoutTime(r *rtt) Time { return t.base + r.timeout() + t.spread }

// lossTime returns the earliest time of the retransmission timers.
func (c *Conn) lossTime() Time {
	if c.tx.outstanding() == 0 {
		return Never
	}
	t := min(c.tmr.timeoutTime(&c.rtt), c.tailTime(), c.tmr.reorder)
	return max(t, c.tmr.notBefore)
}

// Deadline returns the earliest time at which Tick or AckDue must be called; Never if no timer is set. It
// may be in the past, or so near that sleeping isn't worthwhile. It ignores segments that could be sent or
// resent right now.
func (c *Conn) Deadline() Time {
	if c.live.dead {
		return Never
	}
	t := min(c.ack.due, c.lossTime(), c.probeTime())
	return min(t, c.deathTime())
}

// Tick runs the expired timers; Retransmit and ProbeDue then return what they make due. It returns
// ErrPeerDead once the peer is given up, and always afterwards.
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

// Await says whether an answer of the peer is awaited. A peer that owes one is probed like one with
// Config.KeepAlive: it may have died after it has acknowledged the request.
func (c *Conn) Await(answer bool) {
	if c.live.awaited != answer {
		c.live.awaited = answer
		c.live.probes = 0
	}
}

// keepAlive returns how long the peer of an idle connection may be silent before it is probed; 0: unlimited.
func (c *Conn) keepAlive() Time {
	if c.live.awaited && c.cfg.KeepAlive == 0 {
		return c.cfg.DeathTimeout / 2
	}
	return c.cfg.KeepAlive
}

// deathTime returns when the peer is given up if nothing happens until then: after a silence of
// DeathTimeout, or without an acknowledgement for alivePatience times as long.
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

// graceTaken handles a timer that is found long after it expired: this process was suspended, and the
// acknowledgement may still be unread in the receive queue. The timer is postponed a little, once.
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

// probeTail makes the last segment be resent, once (RFC 8985 section 7): its acknowledgement or SACK shows
// what is missing, long before the timeout.
func (c *Conn) probeTail(now Time) {
	t := &c.tx
	t.probe, t.hasProbe = t.psnOf(t.segs[t.head()].prev), true
	if !t.probe.Before(t.limit) {
		t.probe = t.una // the peer has no space for the last segment
	}
	c.tmr.tailProbed = true
	c.tmr.base = now
	c.stats.TailProbes++
}

// timeOut is the retransmission timeout: only the first unacknowledged segment is resent. Its answer shows
// whether the others were lost too; until then the congestion window is at its minimum.
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

// spreadOf returns by how much a repeated timeout is extended, up to a quarter of it. Otherwise connections
// that lost their segments at the same time, or whose timeouts are in step with a queue that others fill,
// would meet the same full queue each time. x differs between connections and between their transmissions.
func spreadOf(timeout Time, x uint32) Time {
	x *= 0x9e3779b1 // Knuth's multiplicative hash
	return timeout * Time(x>>24) / 1024
}

// forgetSacks handles a peer that reported the first unacknowledged segment as received but never
// acknowledged it: its reports are ignored from now on (RFC 2018 section 8).
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

// Timeout returns how long to wait for the answer to a packet before it counts as lost.
func (c *Conn) Timeout() Time { return c.rtt.timeout() }

// Stalled returns for how long nothing was acknowledged although outstanding segments were resent; 0 if
// that is not so.
func (c *Conn) Stalled(now Time) Time {
	if c.tx.outstanding() == 0 || c.tmr.timeouts < deathTries {
		return 0
	}
	return now - c.tmr.progress
}

// TimeoutsInRow returns how many retransmission timeouts have expired since anything was acknowledged.
func (c *Conn) TimeoutsInRow() int { return c.tmr.timeouts }
