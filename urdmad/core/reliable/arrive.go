package reliable

import (
	"errors"

	"urdma/wire"
)

// Errors of impossible acknowledgements. The packet that carried one must be ignored; the connection has
// counted it and is otherwise unchanged.
var (
	// ErrAckRange: the cumulative acknowledgement is for a segment that was never sent, or older than any
	// window (RFC 5961 section 5.2).
	ErrAckRange = errors.New("reliable: acknowledgement outside the window")
	// ErrSackRange: a SACK run is empty or reversed, or is not within the outstanding segments after the
	// cumulative acknowledgement.
	ErrSackRange = errors.New("reliable: SACK run outside the window")
)

// ackEvent has the segments that one packet newly acknowledged.
type ackEvent struct {
	now Time
	n   int // segments

	// The newest segment that was sent only once: only such segments identify a transmission (Karn). It
	// gives a round-trip sample only if no segment that was resent after it was sent was acknowledged with
	// it. Otherwise it may have arrived much earlier, with its acknowledgement delayed by a hole or by a lost
	// acknowledgement.
	orig     uint32
	origSent Time
	hasOrig  bool

	// The newest retransmission that may have arrived.
	again    uint32
	againAge Time
	hasAgain bool

	// early: a segment was acknowledged sooner after its retransmission than the path allows, so the
	// original arrived and the retransmission was needless (the idea of RFC 3522, by time because TRP has
	// no timestamps).
	early bool
}

// OnAck processes the acknowledgement and credits that every packet from the peer carries. An
// acknowledgement older than an earlier one, from a packet that was overtaken, is no error and changes
// nothing.
func (c *Conn) OnAck(now Time, ack wire.PSN, credits uint32) error {
	if !c.ackPlausible(ack) {
		c.stats.BadAcks++
		return ErrAckRange
	}
	c.arrive(now, ack, credits, nil)
	return nil
}

// OnSack processes a SACK packet: the acknowledgement and credits as in OnAck, and the runs of segments
// received out of order.
func (c *Conn) OnSack(now Time, ack wire.PSN, credits uint32, runs []wire.SackRun) error {
	if !c.ackPlausible(ack) {
		c.stats.BadAcks++
		return ErrAckRange
	}
	for _, r := range runs {
		if !c.runPlausible(ack, r) {
			c.stats.BadAcks++
			return ErrSackRange
		}
	}
	c.arrive(now, ack, credits, runs)
	return nil
}

// Plausible reports whether an acknowledgement is possible.
func (c *Conn) Plausible(ack wire.PSN) bool { return c.ackPlausible(ack) }

func (c *Conn) ackPlausible(ack wire.PSN) bool {
	return int(ack.Sub(c.tx.next)) <= 0 && int(ack.Sub(c.tx.una)) >= -c.tx.window
}

func (c *Conn) runPlausible(ack wire.PSN, r wire.SackRun) bool {
	n, behind := int(r.End.Sub(r.First)), int(c.tx.next.Sub(r.End))
	window := c.tx.window
	if n <= 0 || n > window || behind < 0 || behind > 2*window {
		return false
	}
	return r.First.After(ack) // a segment at ack would have advanced ack
}

// arrive applies a checked acknowledgement.
func (c *Conn) arrive(now Time, ack wire.PSN, credits uint32, runs []wire.SackRun) {
	c.hear(now)
	ev := ackEvent{now: now}
	if ack.After(c.tx.una) {
		c.ackThrough(&ev, ack)
	}
	for _, r := range runs {
		c.sackRun(&ev, r)
	}
	if ack == c.tx.una {
		c.setLimit(now, credits)
	}
	if ev.n > 0 {
		c.progress(&ev)
	}
}

// setLimit applies the peer's credits. Credits from a packet that was overtaken may be outdated or too
// small; the next packet, or a probe, corrects them.
func (c *Conn) setLimit(now Time, credits uint32) {
	c.tx.credits = credits
	c.tx.limit = c.tx.una.Add(c.tx.credits)
	if c.tx.credits == 0 {
		c.tmr.progress = now // a peer that closes its window is alive
	}
	if c.tx.limit.After(c.tx.next) {
		c.unblock()
	}
}

// ackThrough marks all segments before ack as received in order.
func (c *Conn) ackThrough(ev *ackEvent, ack wire.PSN) {
	t := &c.tx
	for t.una != ack {
		psn := t.una
		switch {
		case t.nSacked > 0 && t.sacked.has(psn):
			t.sacked.remove(psn)
			t.nSacked--
		default:
			c.ackOne(ev, psn)
		}
		t.una = psn.Add(1)
	}
}

// sackRun marks a run as received out of order. A run that was reported before costs a few word operations:
// every SACK repeats earlier runs.
func (c *Conn) sackRun(ev *ackEvent, r wire.SackRun) {
	t := &c.tx
	first := r.First
	if first.Before(t.una) {
		first = t.una
	}
	for {
		n := int(r.End.Sub(first))
		if n <= 0 {
			return
		}
		first = first.Add(uint32(t.sacked.distanceToGap(first, n)))
		if !first.Before(r.End) {
			return
		}
		c.ackOne(ev, first)
		t.sacked.add(first)
		t.nSacked++
	}
}

// ackOne removes the outstanding segment psn from the segments in flight or lost.
func (c *Conn) ackOne(ev *ackEvent, psn wire.PSN) {
	t := &c.tx
	i := t.index(psn)
	if t.nLost > 0 && t.lost.has(psn) {
		t.lost.remove(psn)
		t.nLost--
	} else {
		t.unlink(i)
	}
	ev.n++
	s := &t.segs[i]
	switch {
	case s.sends == 1:
		if newer(c.loss.newest, s.order) && !c.loss.timedOut {
			c.loss.reordered(s.order, c.cc.top)
			c.stats.Reordered++
		}
		if !ev.hasOrig || newer(s.order, ev.orig) {
			ev.orig, ev.origSent, ev.hasOrig = s.order, s.sent, true
		}
	case !ev.hasAgain || newer(s.order, ev.again):
		ev.again, ev.againAge, ev.hasAgain = s.order, ev.now-s.sent, true
	}
}

// progress updates timers, congestion window and loss detection after new acknowledgements.
func (c *Conn) progress(ev *ackEvent) {
	if ev.hasOrig && (!ev.hasAgain || newer(ev.orig, ev.again)) {
		rtt := ev.now - ev.origSent
		c.rtt.sample(ev.now, rtt)
		c.cc.sample(rtt, c.rtt.base())
	}
	c.judgeEarly(ev)
	switch {
	case ev.hasOrig || ev.early:
		c.rtt.backoff = 0
	case c.rtt.tookLong(ev):
		// The path may be longer than the timeout, which must grow beyond the path before any round trip
		// can be measured.
		c.rtt.backOff()
	case c.rtt.backoff > 0:
		// Karn's algorithm would keep the backed-off timeout until a segment sent only once is
		// acknowledged. If such segments are rare, halving the timeout finds the right value.
		c.rtt.backoff--
	}
	c.judgeTimeout(ev)
	if ev.hasOrig && newer(ev.orig, c.loss.newest) {
		c.loss.newest = ev.orig
	}
	c.startTimers(ev.now)
	c.detectLost(ev.now)
	c.cc.acked(ev.n)
	if !newer(c.cc.roundEnd, c.loss.newest) {
		c.endRound()
	}
}

// judgeEarly decides whether a retransmission was acknowledged too early to have arrived: earlier than
// three quarters of the least round trip, to allow for jitter. If only such acknowledgements follow several
// probes or timeouts in a row, the least round trip must be wrong: the path has changed since the
// measurement, and there was no sample to correct it because every segment was resent.
func (c *Conn) judgeEarly(ev *ackEvent) {
	if ev.hasOrig {
		c.loss.doubts = 0
	}
	if !ev.hasAgain || c.rtt.srtt == 0 || ev.againAge >= c.rtt.base()/4*3 {
		return
	}
	if ev.n == 1 && c.tmr.tailProbed {
		if c.tx.holdsOlder(ev.again) {
			return // had the original arrived, so had segments next to it
		}
		if c.loss.doubts++; c.loss.doubts > maxDoubts {
			c.loss.doubts = 0
			c.rtt.sampleLeast(ev.now, ev.againAge)
			return
		}
	}
	ev.early, ev.hasAgain = true, false
	c.stats.Needless++
	if !c.tmr.tailProbed { // probes and timeouts say nothing about reordering
		c.loss.needless(c.cc.top)
	}
}

// holdsOlder reports whether a segment whose last transmission was before the one with number order is unacknowledged.
func (t *sender) holdsOlder(order uint32) bool {
	oldest := t.segs[t.head()].next
	return t.nLost > 0 || oldest != t.head() && newer(order, t.segs[oldest].order)
}

// endRound ends a round: the last transmission before it, or a later one, has arrived. So the round took
// one round trip, whatever was lost.
func (c *Conn) endRound() {
	c.cc.setTop(c.rtt.ever)
	c.cc.endRound(c.rtt.base())
	if c.rtt.renewed {
		c.rtt.renewed = false
		c.cc.drain(c.rtt.base(), c.rtt.srtt)
	}
	c.cc.roundEnd = c.tx.order
	c.loss.endRound()
}

// judgeTimeout uses the event to judge a timeout whose cause is still unknown (F-RTO, RFC 5682, with SACK).
// If a segment that was sent before the timeout and never again arrives, the window was late rather than
// lost. Otherwise a resent segment arrived, and the order of transmissions shows which others are lost.
func (c *Conn) judgeTimeout(ev *ackEvent) {
	l := &c.loss
	if l.timedOut && (ev.early || ev.hasOrig && !newer(ev.orig, l.firstAt)) {
		l.timedOut = false
		l.newest = l.oldNewest
		c.cc.restore(l.oldCwnd, l.oldThresh)
		c.unmarkLost()
		c.stats.Undone++
		return
	}
	if ev.hasAgain && newer(ev.again, l.newest) && !(c.rtt.tookLong(ev) && l.firstAckMayBeOriginal()) {
		l.newest = ev.again
	}
	if l.timedOut && !c.tx.una.Before(l.recover) {
		l.timedOut = false
	}
}

// tookLong reports whether everything acknowledged so far was sent twice, and the answer took long.
func (r *rtt) tookLong(ev *ackEvent) bool {
	return r.srtt == 0 && ev.hasAgain && !ev.hasOrig && ev.againAge >= r.initial/longForTimeout
}

// firstAckMayBeOriginal returns true once, for the first acknowledgement of a connection if it covers a
// segment resent after a timeout. Nothing is known of the path then. If the path is longer than the initial
// timeout, the original arrived, and others follow it. If those counted as lost, all would be resent; then
// no round trip could be measured, and each further timeout would be too short too.
func (l *lossDetector) firstAckMayBeOriginal() bool {
	first := l.timedOut && !l.waited
	l.waited = true
	return first
}
