package qp

import (
	"urdma/reason"
	"urdma/verbs/abi"
)

// This file fails the queue pairs that stand on something that has broken: a completion
// queue that overran, a client whose memory can't be touched. There may be thousands,
// so each turn looks at some of the table's queue pairs.

const (
	lookBudget = 2048 // queue pairs that a turn looks at
	failCost   = 32   // of those, what failing one takes
)

// breaks marks something as broken: broken is how many queue pairs had been added by
// then. They fail if they stand on it, later ones don't. 0: it is not broken.
func (t *Table) breaks(broken *uint64) {
	*broken = t.added
	t.unchecked = len(t.order)
}

// doomed reports whether a queue pair stands on something broken.
func (q *QP) doomed() bool {
	n := q.ordinal
	return q.SendCQ != nil && q.SendCQ.broken >= n || q.RecvCQ != nil && q.RecvCQ.broken >= n ||
		q.Client.broken >= n || q.Domain != nil && q.Domain.broken >= n || q.broken >= n ||
		q.RQ.shared != nil && q.RQ.shared.broken >= n
}

// doom is why a doomed queue pair fails.
func (q *QP) doom() reason.Number {
	if n := q.ordinal; q.SendCQ != nil && q.SendCQ.broken >= n || q.RecvCQ != nil && q.RecvCQ.broken >= n {
		return reason.Overrun
	}
	return reason.Memory
}

// failDoomed looks at queue pairs, as many as a turn may, and returns how many it looked at.
func (t *Table) failDoomed() (n int) {
	for spent := 0; t.unchecked > 0 && spent < lookBudget; spent++ {
		n++
		t.unchecked--
		if t.check == 0 {
			t.check = len(t.order)
		}
		t.check--
		if q := t.order[t.check]; q.doomed() && q.state != abi.QPSErr {
			q.Fail(EventFatal, q.doom())
			spent += failCost
		}
	}
	return n
}

// track adds a queue pair to those that failDoomed looks at.
func (t *Table) track(q *QP) {
	t.added++
	q.ordinal, q.at = t.added, len(t.order)
	t.order = append(t.order, q)
}

// untrack takes one out. The last takes its place, and is looked at now: its new place
// may have been passed.
func (t *Table) untrack(q *QP) {
	end := len(t.order) - 1
	last := t.order[end]
	t.order[q.at], last.at = last, q.at
	t.order[end] = nil
	t.order = t.order[:end]
	t.check, t.unchecked = min(t.check, end), min(t.unchecked, end)
	if last != q && t.unchecked > 0 && last.doomed() {
		last.Fail(EventFatal, last.doom())
	}
}

// BreakSRQ takes a shared receive queue into error: its program is told, and the queue pairs
// that draw from it, or may, fail soon (InfiniBand vol. 1).
func (t *Table) BreakSRQ(r *RecvQueue) {
	s := r.shared
	t.send(s.Async, abi.Bytes(&abi.AsyncEvent{EventType: abi.EventSRQErr, Handle: s.Handle}))
	if s.Domain != nil {
		t.breaks(&s.Domain.broken)
	} else {
		t.breaks(&s.broken)
	}
}

// BreakClient fails every queue pair that a client has now.
func (t *Table) BreakClient(c *Client) { t.breaks(&c.broken) }

// FailClient ends the queue pairs of a client whose memory cannot be touched, those at
// once that were at work there.
func (t *Table) FailClient(c *Client) {
	for _, q := range t.order {
		if (q.Client == c || c.domains[q.Domain] > 0) && q.carrier != nil && q.carrier.Faulted() {
			q.Fail(EventFatal, reason.Memory)
		}
	}
	if c.broken == 0 {
		t.breaks(&c.broken)
		for d := range c.domains {
			t.breaks(&d.broken)
		}
	}
	t.failDoomed() // not in its turn alone: the next may end in a fault as well
}
