package samehost

import (
	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
)

// This file has connections carry nothing while the link of their port is down on
// purpose. Work waits as long as a silent peer would be waited for, and then fails.

// cuts are the devices that carry nothing, and what waits there. Nil: none does.
type cuts struct {
	down    map[int]bool
	stalled []*Conn // those that may have ended included
}

// SetDeathTimeout sets how long work waits at a port that carries nothing.
func (s *Stack) SetDeathTimeout(t clock.Time) { s.deathTimeout = t }

// SetCut has connections of device dev carry nothing, or go on; on the worker's thread.
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
	for _, c := range waited { // those of other devices stall again
		c.stalledUntil = 0
		if c.live() {
			s.table.Ready(c.QP)
		}
	}
}

// stalls reports whether c may carry nothing, and has it fail if that lasts; for Transmit.
func (c *Conn) stalls() bool {
	v := c.s.cuts
	if !c.live() || !v.down[c.Dev] && !v.down[c.other.Dev] {
		return false
	}
	if !c.answer.owed && !c.QP.Ready() {
		return true // there is nothing that waits
	}
	if c.stalledUntil == 0 {
		c.stalledUntil = c.now() + c.s.deathTimeout
		v.stalled = append(v.stalled, c)
	}
	c.s.clock.Set(c.again, c.stalledUntil)
	return true
}

// lost ends a connection whose work has waited in vain.
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
