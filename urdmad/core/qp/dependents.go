package qp

import (
	"urdma/reason"
	"urdma/verbs/abi"
)

// This file adds queue pairs to the table and removes them, and fails those that depend on a broken
// object: a completion queue that has overrun, or a client whose memory cannot be accessed. There may
// be thousands of them, so each turn checks a part of the table.

const (
	lookBudget = 2048 // queue pairs that a turn checks
	failCost   = 32   // failing one counts as this many checks
)

// Add adds q to the table and gives it a number. It keeps a number it already has, unless another
// queue pair has that number.
func (t *Table) Add(q *QP) {
	q.t = t
	for q.QPN == 0 || t.pairs[q.QPN] != nil || t.Elsewhere(q.QPN) {
		q.QPN = t.rand.Uint32N(1<<24-3) + 2 // 0, 1 and 0xffffff are special in InfiniBand
	}
	t.pairs[q.QPN] = q
	t.track(q)
	t.use(q, 1)
}

// use adds by to the user counts of the objects that the queue pair uses.
func (t *Table) use(q *QP, by int) {
	for _, c := range []*CQ{q.SendCQ, q.RecvCQ} {
		if c != nil {
			c.users += by
		}
	}
	if d := q.Domain; d != nil && by > 0 {
		d.targets[q] = struct{}{}
	} else if d != nil {
		delete(d.targets, q)
	}
	q.RQ.share(by)
}

// Remove ends q's connection and removes q from the table.
func (t *Table) Remove(q *QP) {
	t.abandon(q)
	q.removed = true
	work.Into(&t.past, &q.Stats)
	t.run.remove(q)
	delete(t.pairs, q.QPN)
	t.untrack(q)
	t.use(q, -1)
}

// brokenBy returns the reason why an object broke that the queue pair uses; 0: none is broken.
func (q *QP) brokenBy() reason.Number {
	switch n := q.ordinal; {
	case q.SendCQ != nil && q.SendCQ.broken.at >= n:
		return q.SendCQ.broken.why
	case q.RecvCQ != nil && q.RecvCQ.broken.at >= n:
		return q.RecvCQ.broken.why
	case q.Client.broken.at >= n:
		return q.Client.broken.why
	case q.Domain != nil && q.Domain.broken.at >= n:
		return q.Domain.broken.why
	case q.broken.at >= n:
		return q.broken.why
	case q.RQ.shared != nil && q.RQ.shared.broken.at >= n:
		return q.RQ.shared.broken.why
	}
	return 0
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
		q := t.order[t.check]
		if why := q.brokenBy(); why != 0 && q.state != abi.QPSErr {
			q.Fail(EventFatal, why)
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
	if why := last.brokenBy(); last != q && t.unchecked > 0 && why != 0 {
		last.Fail(EventFatal, why)
	}
}

// BreakSRQ moves a shared receive queue to the error state. Its program gets an event, and the
// queue pairs that draw from it, or may draw from it, fail soon (InfiniBand vol. 1).
func (t *Table) BreakSRQ(r *RecvQueue) {
	s := r.shared
	t.send(s.Async, abi.Bytes(&abi.AsyncEvent{EventType: abi.EventSRQErr, Handle: s.Handle}))
	if s.Domain != nil {
		t.markBroken(&s.Domain.broken, reason.Memory)
	} else {
		t.markBroken(&s.broken, reason.Memory)
	}
}

// BreakClient fails all present queue pairs of a client.
func (t *Table) BreakClient(c *Client) { t.markBroken(&c.broken, reason.Memory) }

// FailClient fails the queue pairs of a client that urdmad can't serve any more: its memory cannot be accessed, or
// serving it met a bug of urdmad. Queue pairs that were accessing its memory fail at once, the others soon.
func (t *Table) FailClient(c *Client, why reason.Number) {
	for _, q := range t.order {
		if (q.Client == c || c.domains[q.Domain] > 0) && q.carrier != nil && q.carrier.Faulted() {
			q.Fail(EventFatal, why)
		}
	}
	if c.broken.at == 0 {
		t.markBroken(&c.broken, why)
		for d := range c.domains {
			t.markBroken(&d.broken, why)
		}
	}
	t.failDependents() // now too: the next turn may end in a fault before it gets here
}
