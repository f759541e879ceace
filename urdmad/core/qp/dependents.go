package qp

import (
	"urdma/reason"
	"urdma/verbs/abi"
)

// This file fails the queue pairs that depend on a broken object: a completion queue that has
// overrun, or a client whose memory cannot be accessed. There may be thousands of them, so each
// turn checks a part of the table.

const (
	lookBudget = 2048 // queue pairs that a turn checks
	failCost   = 32   // failing one counts as this many checks
)

// markBroken marks an object as broken. brokenAt becomes the number of queue pairs added so far:
// those that use the object fail, and queue pairs added later do not. 0 means not broken.
func (t *Table) markBroken(brokenAt *uint64) {
	*brokenAt = t.added
	t.unchecked = len(t.order)
}

// dependsOnBroken reports whether the queue pair uses a broken object.
func (q *QP) dependsOnBroken() bool {
	n := q.ordinal
	return q.SendCQ != nil && q.SendCQ.brokenAt >= n || q.RecvCQ != nil && q.RecvCQ.brokenAt >= n ||
		q.Client.brokenAt >= n || q.Domain != nil && q.Domain.brokenAt >= n || q.brokenAt >= n ||
		q.RQ.shared != nil && q.RQ.shared.brokenAt >= n
}

// brokenReason returns the reason why a queue pair that uses a broken object fails.
func (q *QP) brokenReason() reason.Number {
	if n := q.ordinal; q.SendCQ != nil && q.SendCQ.brokenAt >= n || q.RecvCQ != nil && q.RecvCQ.brokenAt >= n {
		return reason.Overrun
	}
	if q.Client.brokenBy != 0 {
		return q.Client.brokenBy
	}
	return reason.Memory
}

// failDependents checks queue pairs, up to the limit of a turn, and returns the number checked.
func (t *Table) failDependents() (n int) {
	for spent := 0; t.unchecked > 0 && spent < lookBudget; spent++ {
		n++
		t.unchecked--
		if t.check == 0 {
			t.check = len(t.order)
		}
		t.check--
		if q := t.order[t.check]; q.dependsOnBroken() && q.state != abi.QPSErr {
			q.Fail(EventFatal, q.brokenReason())
			spent += failCost
		}
	}
	return n
}

// track adds a queue pair to the list that failDependents checks.
func (t *Table) track(q *QP) {
	t.added++
	q.ordinal, q.at = t.added, len(t.order)
	t.order = append(t.order, q)
}

// untrack removes a queue pair from the list. The last one moves to its place and is checked now,
// because failDependents may already have passed that place.
func (t *Table) untrack(q *QP) {
	end := len(t.order) - 1
	last := t.order[end]
	t.order[q.at], last.at = last, q.at
	t.order[end] = nil
	t.order = t.order[:end]
	t.check, t.unchecked = min(t.check, end), min(t.unchecked, end)
	if last != q && t.unchecked > 0 && last.dependsOnBroken() {
		last.Fail(EventFatal, last.brokenReason())
	}
}

// BreakSRQ moves a shared receive queue to the error state. Its program gets an event, and the
// queue pairs that draw from it, or may draw from it, fail soon (InfiniBand vol. 1).
func (t *Table) BreakSRQ(r *RecvQueue) {
	s := r.shared
	t.send(s.Async, abi.Bytes(&abi.AsyncEvent{EventType: abi.EventSRQErr, Handle: s.Handle}))
	if s.Domain != nil {
		t.markBroken(&s.Domain.brokenAt)
	} else {
		t.markBroken(&s.brokenAt)
	}
}

// BreakClient fails all present queue pairs of a client.
func (t *Table) BreakClient(c *Client) { t.markBroken(&c.brokenAt) }

// FailClient fails the queue pairs of a client that urdmad can't serve any more: its memory cannot be accessed, or
// serving it met a bug of urdmad. Queue pairs that were accessing its memory fail at once, the others soon.
func (t *Table) FailClient(c *Client, why reason.Number) {
	for _, q := range t.order {
		if (q.Client == c || c.domains[q.Domain] > 0) && q.carrier != nil && q.carrier.Faulted() {
			q.Fail(EventFatal, why)
		}
	}
	c.brokenBy = why
	if c.brokenAt == 0 {
		t.markBroken(&c.brokenAt)
		for d := range c.domains {
			t.markBroken(&d.brokenAt)
		}
	}
	t.failDependents() // now too: the next turn may end in a fault before it gets here
}
