package reliable

import "urdma/wire"

// lossDetector decides from the order of transmissions which segments were
// lost: one that was sent before another that arrived is late, and it counts
// as lost when it is late by enough transmissions (RFC 9002 section 6.1.1) or
// by enough time (RFC 8985 section 6.2). Since every transmission has a new
// number, a lost retransmission is found like any other.
//
// "Enough" follows the path: each segment that arrives late after all, and
// each needless retransmission, raises it; calm lowers it again.
type lossDetector struct {
	newest  uint32 // number of the newest transmission known to have arrived
	reorder int    // transmissions of lateness that are still no loss, plus one
	slack   int    // quarters of a round trip of lateness that are still no loss
	calm    int    // rounds without reordering
	waited  bool   // mayBeFirst has said yes
	doubts  int    // early acknowledgements in a row with nothing else

	// An unfinished timeout episode, for its undoing.
	timedOut  bool
	recover   wire.PSN // next new PSN when the timeout fired; the episode ends there
	firstAt   uint32   // newest transmission number then
	oldNewest uint32   // newest at that time
	oldCwnd   int
	oldThresh int
}

const (
	minReorder = 3
	minSlack   = 1
	maxSlack   = 16
	calmRounds = 64
	maxDoubts  = 2
)

func (l *lossDetector) init() {
	l.reorder, l.slack = minReorder, minSlack
}

// newer compares transmission numbers, which wrap.
func newer(a, b uint32) bool { return int32(a-b) > 0 }

// late learns that a segment sent once arrived behind the newest; window is how many
// can be under way on this path.
func (l *lossDetector) late(order uint32, window int) {
	extent := int(int32(l.newest - order))
	l.reorder = max(l.reorder, min(extent+1, window/2))
	l.calm = 0
}

// needless learns that a segment was resent though the original arrived.
func (l *lossDetector) needless(window int) {
	l.reorder = max(l.reorder, min(2*l.reorder, window/2))
	l.slack = min(l.slack+1, maxSlack)
	l.calm = 0
}

// endRound lets what reordering taught fade.
func (l *lossDetector) endRound() {
	if l.calm++; l.calm < calmRounds {
		return
	}
	l.calm = 0
	l.reorder = minReorder + (l.reorder-minReorder)/2
	l.slack = max(minSlack, l.slack/2)
}

// patience is how long after its transmission a segment that later ones
// overtook is waited for.
func (c *Conn) patience() Time {
	rtt := max(c.rtt.srtt, c.rtt.latest)
	return rtt + rtt*Time(c.loss.slack)/4
}

// detectLost moves lost segments from the flight list to the lost set, and
// arms the reordering timer for the first that is late but not yet lost.
func (c *Conn) detectLost(now Time) {
	t := &c.tx
	c.tmr.reorder = Never
	wait := c.patience()
	for i := t.segs[t.head()].next; i != t.head(); i = t.segs[t.head()].next {
		s := &t.segs[i]
		behind := int32(c.loss.newest - s.order)
		if behind <= 0 {
			return
		}
		lostAt := s.sent + wait
		if int(behind) >= c.loss.reorder {
			lostAt = s.soonest(&c.rtt)
		}
		if now < lostAt {
			c.tmr.reorder = lostAt
			return
		}
		c.markLost(i)
	}
}

// soonest is when a segment overtaken by enough others counts as lost: at
// once, but a retransmission not before its own answer could be here.
func (s *segment) soonest(r *rtt) Time {
	if s.sends == 1 || r.srtt == 0 {
		return s.sent
	}
	return s.sent + max(r.base(), r.srtt/2)
}

func (c *Conn) markLost(i uint32) {
	t := &c.tx
	t.unlink(i)
	t.lost.add(t.psnOf(i))
	t.nLost++
	c.cc.oneLost()
	c.stats.FastLost++
}

// unmarkLost takes back, after a needless timeout, the losses concluded from
// its retransmissions. They go back to the front of the flight list: they
// were sent once, before everything that is still on it.
func (c *Conn) unmarkLost() {
	t := &c.tx
	for psn := t.next; t.nLost > 0 && psn != t.una; {
		psn = psn.Add(^uint32(0))
		i := t.index(psn)
		if !t.lost.has(psn) || t.segs[i].sends > 1 {
			continue
		}
		t.lost.remove(psn)
		t.nLost--
		t.link(i, t.head())
		c.cc.lateAfterAll()
	}
}
