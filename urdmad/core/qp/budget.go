package qp

import "urdma/urdmad/core/events"

// This file bounds what a turn does for queue pairs, and for those of one client, however
// many have something to send. It counts in bytes: those that are copied, and as many as
// could be copied in the time that anything else takes, on the generous side.
const (
	turnBudget   = 8 << 20
	clientBudget = 2 << 20

	pieceCost = 4096 // a packet, or a message within this urdmad
	slotCost  = 512  // fetching or completing a work request
	dropCost  = 128  // forgetting a work request
	eventCost = 16 << 10
	lookCost  = 256 // looking at a target queue pair of an XRC domain
)

// affords reports whether a turn may still do something for a client, within 1/of of the
// budgets.
func (t *Table) affords(c *Client, of int) bool {
	if c.turn != t.turn {
		c.turn, c.spent = t.turn, 0
	}
	return c.spent < clientBudget/of && t.spent < turnBudget/of
}

// Overspent reports whether as much was done as a turn may, since so much was spent.
func (t *Table) Overspent(since int) bool { return t.spent-since >= turnBudget }

// Spent is what was done since the last Transmit, or in the present one.
func (t *Table) Spent() int { return t.spent }

// Spend adds what something took that the table doesn't see.
func (t *Table) Spend(bytes int) { t.spent += bytes }

// send sends an event message.
func (t *Table) send(to *events.Socket, msg []byte) {
	t.spent += eventCost
	t.Events.Send(to, msg)
}

// Rung answers a queue pair's bell. Posts take half of the budget at most, so that the
// turn can send; then the queue pair's are fetched when its turn in line comes.
func (t *Table) Rung(q *QP) {
	if !t.affords(q.Client, 2) {
		q.SQ.more = true
		t.Ready(q)
		return
	}
	before := t.spent
	q.Post()
	q.Client.spent += t.spent - before
}

// Transmit serves the queue pairs in line, each once, as far as the budgets go, and
// returns how much moved. Those that the turn's budget is not enough for are the first of
// the next; those of a client that has used up its own stand behind all others.
func (t *Table) Transmit() (n int) {
	n = t.failDoomed()
	t.spent = 0 // what has arrived took its time, and must not keep answers from being sent
	for count := t.run.len(); count > 0 && t.spent < turnBudget; count-- {
		q := t.run.take()
		if !t.affords(q.Client, 1) {
			t.run.add(q)
			continue
		}
		n += t.serve(q)
	}
	t.sender = nil
	t.turn++
	t.spent = 0
	return n
}

// serve has a queue pair fetch and send, and charges its client.
func (t *Table) serve(q *QP) int {
	before := t.spent
	if q.SQ.more {
		q.Post()
	}
	t.sender = q
	n := t.transmit(q)
	t.spent += n * pieceCost
	q.Client.spent += t.spent - before
	return n
}
