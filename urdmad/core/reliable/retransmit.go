package reliable

import "urdma/wire"

// Retransmit returns the next segment that must be resent now, lowest PSN first, and marks it as resent.
// The congestion window and the peer's credits limit it, except the first unacknowledged segment, which
// must get through. Call it until !ok after every OnAck, OnSack and Tick.
func (c *Conn) Retransmit(now Time) (psn wire.PSN, token uint64, ok bool) {
	t := &c.tx
	if c.live.dead {
		return 0, 0, false
	}
	if t.hasProbe {
		t.hasProbe = false
		if t.holds(t.probe) && !t.sacked.has(t.probe) {
			return c.resend(now, t.probe)
		}
	}
	if t.nLost == 0 {
		return 0, 0, false
	}
	if t.flight >= c.cc.window {
		c.cc.limited = true
		return 0, 0, false
	}
	psn = t.una.Add(uint32(t.lost.distanceToMember(t.una, t.outstanding())))
	if psn != t.una && !psn.Before(t.limit) {
		return 0, 0, false // the peer has no space for it now
	}
	return c.resend(now, psn)
}

func (c *Conn) resend(now Time, psn wire.PSN) (wire.PSN, uint64, bool) {
	t := &c.tx
	i := t.index(psn)
	if t.lost.has(psn) {
		t.lost.remove(psn)
		t.nLost--
	} else {
		t.unlink(i)
	}
	t.transmit(now, i)
	t.wantAR = true
	c.tmr.lastSend = now
	if psn == t.una {
		c.tmr.base = now // the timeout counts from the last transmission of the first unacknowledged segment
	}
	c.stats.Resent++
	return psn, t.segs[i].token, true
}
