package qp

import "urdma/verbs/abi"

// This file tells whoever watches a client what happens to its queue pairs and completion
// queues. A client that nobody watches pays a comparison in each place.

// Watch is told what happens to a client; on the worker's thread. What it is given is valid
// during the call only.
type Watch interface {
	// Event tells of a change of state, an asynchronous event, a failed completion, a segment
	// that is sent again or a message that finds no receive; with Client.WatchAll also of
	// each post, receive, placement and completion.
	Event(e *abi.TraceEvent)
	// Failed tells why a queue pair fails, once until its program makes it work again.
	Failed(q *QP, f *Failure)
}

// event tells of an event.
func (t *Table) event(c *Client, e abi.TraceEvent) {
	if c.Watch != nil {
		t.traced = e // no call's argument: that would be allocated
		c.Watch.Event(&t.traced)
	}
}

func (q *QP) event(e abi.TraceEvent) {
	e.QPN = q.QPN
	q.t.event(q.Client, e)
}

// placed tells of bytes of a message that were written to memory, if that is wanted; opcode
// is enum ibv_wc_opcode, where the wr_id of what they are for, or the address of a Write.
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

// tellAsync tells of an asynchronous event; qpn is 0 if it is no queue pair's.
func (t *Table) tellAsync(c *Client, qpn, event uint32) {
	t.event(c, abi.TraceEvent{Kind: abi.TraceAsync, QPN: qpn, Code: event})
}

// moveTo moves the queue pair to a state, enum ibv_qp_state.
func (q *QP) moveTo(state uint32) {
	if state != q.state {
		q.event(abi.TraceEvent{Kind: abi.TraceState, Code: state})
	}
	if state != abi.QPSErr && state != abi.QPSSQE {
		q.why = 0
	}
	q.state = state
}

// SentAgain tells of a segment that a carrier sends again.
func (c *Connection) SentAgain(psn uint32) {
	if q := c.QP; q != nil {
		q.event(abi.TraceEvent{Kind: abi.TraceResent, Code: psn})
	}
}

// FoundNoReceive tells of a message that begins to wait for a receive of receiver's, nil:
// c's own queue pair.
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
