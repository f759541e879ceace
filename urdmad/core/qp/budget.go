package qp

import "urdma/urdmad/core/events"

// This file limits the work of a turn, over all queue pairs and per client, however many queue
// pairs have something to send. Work is counted in bytes: those copied, and for other work the
// number of bytes that could be copied in the same time, rounded up.
const (
	turnBudget   = 8 << 20
	clientBudget = 2 << 20

	pieceCost = 4096 // a packet, or a message within this urdmad
	slotCost  = 512  // fetching or completing a work request
	dropCost  = 128  // dropping a work request without completion
	eventCost = 16 << 10
	lookCost  = 256 // checking a target queue pair of an XRC domain
)

// affords reports whether the turn's budget and the client's budget still allow work for a
// client. Only the fraction 1/of of each budget counts.
func (t *Table) affords(c *Client, of int) bool {
	if c.turn != t.turn {
		c.turn, c.spent = t.turn, 0
	}
	return c.spent < clientBudget/of && t.spent < turnBudget/of
}

// Overspent reports whether the work done since the counter was at since has used up a turn's
// budget.
func (t *Table) Overspent(since int) bool { return t.spent-since >= turnBudget }

// Spent returns the work done since the last Transmit, or so far in the present one.
func (t *Table) Spent() int { return t.spent }

// Spend adds work that the table does not see, in bytes.
func (t *Table) Spend(bytes int) { t.spent += bytes }

// send sends an event message.
func (t *Table) send(to *events.Socket, msg []byte) {
	t.spent += eventCost
	t.Events.Send(to, msg)
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
