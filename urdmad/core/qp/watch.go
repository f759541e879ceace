package qp

import "urdma/verbs/abi"

// This file reports events of a client's queue pairs and completion queues to an observer. A
// client without an observer costs one comparison at each place.

// Watch observes a client. Calls come on the worker's thread, and arguments are valid during the
// call only.
type Watch interface {
	// Event reports a state change, an asynchronous event, a failed completion, a retransmitted
	// segment or a message that finds no receive. With Client.WatchAll it also reports each post,
	// receive, placement and completion.
	Event(e *abi.TraceEvent)
	// Failed reports why a queue pair fails, once until its program makes it work again.
	Failed(q *QP, f *Failure)
}

// event reports an event of a client.
func (t *Table) event(c *Client, e abi.TraceEvent) {
	if c.Watch != nil {
		t.traced = e // a field: an argument would be allocated on the heap
		c.Watch.Event(&t.traced)
	}
}

func (q *QP) event(e abi.TraceEvent) {
	e.QPN = q.QPN
	q.t.event(q.Client, e)
}

// placed reports that bytes of a message were written to memory, if the observer wants that.
// opcode is enum ibv_wc_opcode; where is the wr_id of the work request, or the address of a
// Write.
func (q *QP) placed(opcode uint32, where uint64, n uint32) {
	if q.Client.WatchAll {
		q.tellPlaced(opcode, where, n)
	}
}

//go:noinline
func (q *QP) tellPlaced(opcode uint32, where uint64, n uint32) {
	if n > 0 {
		q.event(abi.TraceEvent{Kind: abi.TracePlaced, Code: opcode, Length: n, WRID: where})
	}
}

func (q *QP) tellPosted(wr *SendWR, opcode uint32) {
	q.event(abi.TraceEvent{Kind: abi.TraceSend, Code: opcode, Status: wr.status, Length: wr.Length, WRID: wr.id})
}

func (r *Receive) tellBegun() {
	r.q.event(abi.TraceEvent{Kind: abi.TraceReceive, Length: r.capacity, WRID: r.id})
}

func (t *Table) tellCompleted(c *CQ, w *abi.CQE) {
	if c.Client.WatchAll || w.Status != abi.StatusWRFlushErr {
		t.event(c.Client, abi.TraceEvent{Kind: abi.TraceCompletion, QPN: w.QPNum, Code: w.Opcode, Status: w.Status,
			Length: w.ByteLen, WRID: w.WRID})
	}
}

// tellAsync reports an asynchronous event; qpn is 0 if it does not belong to a queue pair.
func (t *Table) tellAsync(c *Client, qpn, event uint32) {
	t.event(c, abi.TraceEvent{Kind: abi.TraceAsync, QPN: qpn, Code: event})
}

// moveTo changes the queue pair's state, enum ibv_qp_state.
func (q *QP) moveTo(state uint32) {
	if state != q.state {
		q.event(abi.TraceEvent{Kind: abi.TraceState, Code: state})
	}
	if state != abi.QPSErr && state != abi.QPSSQE {
		q.why = 0
	}
	q.state = state
}

// SentAgain reports that the carrier retransmits a segment.
func (c *Connection) SentAgain(psn uint32) {
	if q := c.QP; q != nil {
		q.event(abi.TraceEvent{Kind: abi.TraceResent, Code: psn})
	}
}

// FoundNoReceive reports that a message begins to wait for a receive. receiver is the queue pair
// that has no receive; nil means c's own.
func (c *Connection) FoundNoReceive(receiver *QP) {
	q := c.QP
	if q == nil {
		return
	}
	if receiver == nil {
		receiver = q
	}
	receiver.unready = receiver.unready || receiver.RQ.untouched()
	q.event(abi.TraceEvent{Kind: abi.TraceNotReady})
}
