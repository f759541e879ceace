package reliable

import (
	"fmt"

	"urdma/wire"
)

// Check returns the first invariant of c that doesn't hold.
func (c *Conn) Check() error {
	if err := c.tx.check(); err != nil {
		return err
	}
	if err := c.rx.check(); err != nil {
		return err
	}
	if c.cc.window < 1 || c.cc.window > max(minCwnd, c.cfg.Window) {
		return fmt.Errorf("congestion window is %d of %d", c.cc.window, c.cfg.Window)
	}
	if rto := c.rtt.timeout(); rto < min(c.cfg.MinRTO, c.cfg.MaxRTO) || rto > c.cfg.MaxRTO {
		return fmt.Errorf("timeout is %d", rto)
	}
	if c.tx.outstanding() > 0 && !c.live.dead && c.Deadline() == Never {
		return fmt.Errorf("%d segments outstanding and no timer", c.tx.outstanding())
	}
	return nil
}

func (t *sender) check() error {
	n := t.outstanding()
	if n < 0 || n > t.window || t.flight+t.nLost+t.nSacked != n {
		return fmt.Errorf("%d in flight, %d lost, %d sacked of %d outstanding", t.flight, t.nLost, t.nSacked, n)
	}
	lost, sacked := 0, 0
	for psn := t.una; psn != t.next; psn = psn.Add(1) {
		if t.lost.has(psn) {
			lost++
		}
		if t.sacked.has(psn) {
			sacked++
		}
		if t.lost.has(psn) && t.sacked.has(psn) {
			return fmt.Errorf("PSN %d is lost and sacked", psn)
		}
		if t.at(psn).sends == 0 {
			return fmt.Errorf("PSN %d was never sent", psn)
		}
	}
	if lost != t.nLost || sacked != t.nSacked {
		return fmt.Errorf("%d lost and %d sacked are marked, %d and %d counted", lost, sacked, t.nLost, t.nSacked)
	}
	return t.checkFlight()
}

func (t *sender) checkFlight() error {
	listed, before := 0, uint32(0)
	for i := t.segs[t.head()].next; i != t.head(); i = t.segs[i].next {
		if listed++; listed > t.flight {
			return fmt.Errorf("flight list is longer than %d", t.flight)
		}
		psn := t.psnOf(i)
		if !psn.Before(t.next) || t.lost.has(psn) || t.sacked.has(psn) {
			return fmt.Errorf("PSN %d is on the flight list", psn)
		}
		if order := t.segs[i].order; listed > 1 && !newer(order, before) {
			return fmt.Errorf("flight list has transmission %d behind %d", order, before)
		}
		before = t.segs[i].order
	}
	if listed != t.flight {
		return fmt.Errorf("%d on the flight list, %d counted", listed, t.flight)
	}
	return nil
}

func (r *receiver) check() error {
	span := int(r.end.Sub(r.next))
	if span < 0 || span > min(r.window, int(r.held.size)) {
		return fmt.Errorf("held segments end %d past the next", span)
	}
	held := 0
	for i := range int(r.held.size) {
		if r.held.has(r.next.Add(uint32(i))) {
			held++
			if i >= span {
				return fmt.Errorf("held segment at %d, end at %d", i, span)
			}
		}
	}
	if held != r.nHeld {
		return fmt.Errorf("%d segments held, %d counted", held, r.nHeld)
	}
	return nil
}

// SetOrder makes the next transmission number follow n.
func (c *Conn) SetOrder(n uint32) {
	c.tx.order, c.loss.newest, c.cc.roundEnd = n, n, n
}

// Records returns the number of segments for which there are records.
func (c *Conn) Records() int { return c.tx.ring() }

// HeldRoom returns the number of segments past the next one that can be recorded as held.
func (c *Conn) HeldRoom() int { return int(c.rx.held.size) }

// RecvWindow is the largest number of segments past the cumulative acknowledgement that are held.
func (c *Conn) RecvWindow() int { return c.cfg.RecvWindow }

// Arrive does what a caller does that can keep every segment: it judges the segment, and records it.
func (c *Conn) Arrive(now Time, psn wire.PSN, ackRequested bool) Verdict {
	v := c.Judge(psn)
	c.OnData(now, psn, ackRequested, v)
	return v
}
