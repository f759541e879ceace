package qp

import "urdma/verbs/abi"

// This file serves the queue pairs in line, within the limits of table.go for the work of a turn.

// affords reports whether the turn's budget and the client's budget still allow work for a
// client. Only the fraction 1/of of each budget counts.
func (t *Table) affords(c *Client, of int) bool {
	if c.turn != t.turn {
		c.turn, c.spent = t.turn, 0
	}
	return c.spent < clientBudget/of && t.spent < turnBudget/of
}

// Rung fetches the posts of a queue pair whose doorbell rang. Fetching uses at most half of the
// budget, so that the turn can send. If the budget does not allow it, the posts are fetched when
// the queue pair's turn in line comes.
func (t *Table) Rung(q *QP) {
	if !t.affords(q.Client, 2) {
		q.SQ.more = true
		t.Ready(q)
		return
	}
	before := t.spent
	t.Serving = q
	q.Post()
	t.Serving = nil
	q.Client.spent += t.spent - before
}

// singleLength is the length limit, in bytes, of the message for which PostSingle returns true.
const singleLength = 4096

// PostSingle does what Rung does. It also reports whether exactly one short message was posted
// with nothing else outstanding: such a message need not wait for the queue pair's turn in line.
func (t *Table) PostSingle(q *QP) bool {
	s := &q.SQ
	idle := s.head == s.tail
	t.Rung(q)
	return idle && s.Outstanding() == 1 && !s.more && s.At(s.head).Length <= singleLength
}

// Transmit serves the queue pairs in line, each once, within the budgets, and returns the number
// of pieces sent. Queue pairs that the turn's budget did not reach are first in the next turn.
// Queue pairs of a client that has used up its own budget follow them.
func (t *Table) Transmit() (n int) {
	n = t.failDependents()
	t.spent = 0      // the work of receiving must not keep answers from being sent
	t.run.readmit(0) // a fault in client memory may have ended the last Transmit
	count := t.run.len()
	for ; count > 0 && t.spent < turnBudget; count-- {
		q := t.run.take()
		if !t.affords(q.Client, 1) {
			t.run.passOver(q)
			continue
		}
		n += t.serve(q)
	}
	t.run.readmit(count)
	t.turn++
	t.spent = 0
	return n
}

// serve fetches the posts of a queue pair, sends, and charges its client's budget.
func (t *Table) serve(q *QP) int {
	before := t.spent
	t.Serving = q
	if q.SQ.more {
		q.Post()
	}
	n := t.transmit(q)
	t.Serving = nil
	t.spent += n * pieceCost
	q.Client.spent += t.spent - before
	return n
}

// SendNow serves a queue pair out of its turn in line, and returns the number of pieces sent.
func (t *Table) SendNow(q *QP) int {
	t.Serving = q
	n := t.transmit(q)
	t.Serving = nil
	return n
}

// transmit sends for a queue pair, and returns the number of pieces sent.
func (t *Table) transmit(q *QP) (n int) {
	switch {
	case q.state == abi.QPSErr || q.state == abi.QPSSQE:
		q.flushPosted(fetchBudget)
		return 1
	case q.carrier == nil:
		return 0
	case q.SQ.oldestFailed():
		q.completeSends()
		return 1
	}
	if n = q.carryOutLocal(); n == fetchBudget { // also before a connection is established
		t.Ready(q)
	}
	if q.carrier != nil {
		n += q.carrier.Transmit()
	}
	return n
}
