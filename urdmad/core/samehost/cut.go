package samehost

import (
	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
)

// This file stops the data of connections while the link of their port is administratively down. Work waits
// as long as the peer's silence would be tolerated, and then fails.

// cuts are the devices whose link is down, and the connections that wait there; nil if there are none.
type cuts struct {
	down    map[int]bool
	stalled []*Conn // including connections that may have ended
}

// SetDeathTimeout sets how long work waits at a port whose link is down.
func (s *Stack) SetDeathTimeout(t clock.Time) { s.deathTimeout = t }

// SetCut stops or resumes the data of device dev's connections; call it on the worker's thread.
func (s *Stack) SetCut(dev int, down bool) {
	if s.cuts == nil {
		if !down {
			return
		}
		s.cuts = &cuts{down: map[int]bool{}}
	}
	waited := s.cuts.stalled
	if down {
		s.cuts.down[dev] = true
	} else if delete(s.cuts.down, dev); len(s.cuts.down) == 0 {
		s.cuts = nil
	} else {
		s.cuts.stalled = nil
	}
	if down {
		return
	}
	for _, c := range waited { // connections of other devices that are down stall again
		c.stalledUntil = 0
		if c.live() {
			s.table.Ready(c.QP)
		}
	}
}

// stalls, called by Transmit, reports whether c's device is down, and makes c fail if that lasts.
func (c *Conn) stalls() bool {
	v := c.s.cuts
	if !c.live() || !v.down[c.Dev] && !v.down[c.other.Dev] {
		return false
	}
	if !c.answer.owed && !c.QP.Ready() {
		return true // no work waits
	}
	if c.stalledUntil == 0 {
		c.stalledUntil = c.now() + c.s.deathTimeout
		v.stalled = append(v.stalled, c)
	}
	c.s.clock.Set(c.again, c.stalledUntil)
	return true
}

// lost ends a connection whose work has waited too long.
func (c *Conn) lost() {
	if c.completeDelayed(); !c.live() {
		return
	}
	if c.acknowledge(); !c.live() {
		return
	}
	c.reason = qp.CloseDead
	c.QP.FailOldest(abi.StatusRetryExcErr, c.reason.Why())
	if c.live() {
		c.finish()
	}
}
