package reliable

import "urdma/wire"

// lossDetector decides from the order of transmissions which segments were lost. A segment is late if one
// sent after it has arrived. It counts as lost when it is late by enough transmissions (RFC 9002 section
// 6.1.1) or by enough time (RFC 8985 section 6.2). Every transmission has a new number, so a lost
// retransmission is found in the same way.
//
// "Enough" adapts to the path: each segment that was late but arrived, and each needless retransmission,
// raises it; rounds without reordering lower it again.
type lossDetector struct {
	newest  uint32 // number of the newest transmission known to have arrived
	reorder int    // lateness in transmissions that is not a loss yet, plus one
	slack   int    // lateness in quarters of a round trip that is not a loss yet
	calm    int    // rounds without reordering
	waited  bool   // firstAckMayBeOriginal has returned true
	doubts  int    // consecutive events with nothing but early acknowledgements

	// State of an unfinished timeout, to undo it.
	timedOut  bool
	recover   wire.PSN // next new PSN when the timeout fired; the state ends when it is acknowledged
	firstAt   uint32   // newest transmission number at the timeout
	oldNewest uint32   // value of newest at the timeout
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

// reordered records that a segment sent once arrived after newer ones; window is the number of segments
// that can be in flight on this path.
func (l *lossDetector) reordered(order uint32, window int) {
	extent := int(int32(l.newest - order))
	l.reorder = max(l.reorder, min(extent+1, window/2))
	l.calm = 0
}

// needless records that a segment was resent although the original arrived.
func (l *lossDetector) needless(window int) {
	l.reorder = max(l.reorder, min(2*l.reorder, window/2))
	l.slack = min(l.slack+1, maxSlack)
	l.calm = 0
}

// endRound lowers the tolerance of reordering after calm rounds.
func (l *lossDetector) endRound() {
	if l.calm++; l.calm < calmRounds {
		return
	}
	l.calm = 0
	l.reorder = minReorder + (l.reorder-minReorder)/2
	l.slack = max(minSlack, l.slack/2)
}

// patience returns how long after its transmission an overtaken segment is still expected.
func (c *Conn) patience() Time {
	rtt := max(c.rtt.srtt, c.rtt.latest)
	return rtt + rtt*Time(c.loss.slack)/4
}

// detectLost moves lost segments from the flight list to the lost set, and sets the reordering timer for
// the first segment that is late but not lost yet.
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

// soonest returns when a segment that enough others have overtaken counts as lost: at once, but a
// retransmission not before its acknowledgement could arrive.
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
	if l := &c.loss; !l.timedOut || newer(t.segs[i].order, l.firstAt) {
		c.cc.countLost() // the timeout has collapsed the window for the others
	}
	c.stats.FastLost++
}

// unmarkLost is called after a timeout turned out to be needless. Segments that count as lost only because
// retransmissions of that timeout overtook them no longer count as lost. They return to the front of the flight
// list: they were sent once, before all others on it.
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
	}
}
