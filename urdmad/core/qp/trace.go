package qp

import "urdma/verbs/abi"

// This file tells traces what happens to queue pairs and completion queues.
// A client that nobody traces pays a comparison in each place. What is rare goes to the
// client's flight recorder as well, always.

// Trace is told of an event of its client, on the worker's thread. It may not keep e.
// text is that of a reason.
type Trace func(e *abi.TraceEvent, text string)

// tell reports an event of a queue pair.
func (q *QP) tell(e abi.TraceEvent) {
	e.QPN = q.QPN
	q.Client.Trace(&e, "")
}

// note has an event recorded, and reports it.
func (t *Table) note(c *Client, e abi.TraceEvent) {
	t.event = e // no call's argument: that would be allocated
	c.Recorder.Note(t.Clock.Now, &t.event)
	if c.Trace != nil {
		c.Trace(&t.event, "")
	}
}

func (q *QP) tracePosted(wr *SendWR, opcode uint32) {
	q.tell(abi.TraceEvent{Kind: abi.TraceSend, Code: opcode, Status: wr.status, Length: wr.Length, WRID: wr.id})
}

func (r *Receive) traceBegun() {
	r.q.tell(abi.TraceEvent{Kind: abi.TraceReceive, Length: r.capacity, WRID: r.id})
}

// tracePlaced tells of bytes of a message that were written to memory; opcode is
// enum ibv_wc_opcode, where the wr_id of what they are for, or the address of a Write.
func (q *QP) tracePlaced(opcode uint32, where uint64, n uint32) {
	q.tell(abi.TraceEvent{Kind: abi.TracePlaced, Code: opcode, Length: n, WRID: where})
}

func (t *Table) traceCompletion(c *CQ, w *abi.CQE) {
	e := abi.TraceEvent{Kind: abi.TraceCompletion, QPN: w.QPNum, Code: w.Opcode, Status: w.Status, Length: w.ByteLen, WRID: w.WRID}
	switch {
	case w.Status != abi.StatusSuccess && w.Status != abi.StatusWRFlushErr:
		t.note(c.Client, e)
	case c.Client.Trace != nil:
		c.Client.Trace(&e, "")
	}
}

func (t *Table) traceAsync(c *Client, qpn, event uint32) {
	t.note(c, abi.TraceEvent{Kind: abi.TraceAsync, QPN: qpn, Code: event})
}

// moveTo moves the queue pair to a state, enum ibv_qp_state.
func (q *QP) moveTo(state uint32) {
	if state != q.state {
		q.t.note(q.Client, abi.TraceEvent{Kind: abi.TraceState, QPN: q.QPN, Code: state})
	}
	if state != abi.QPSErr && state != abi.QPSSQE {
		q.why = 0
	}
	q.state = state
}

// TraceResent tells of a segment that a carrier sends again.
func (c *Connection) TraceResent(psn uint32) {
	if q := c.QP; q != nil {
		q.t.note(q.Client, abi.TraceEvent{Kind: abi.TraceResent, QPN: q.QPN, Code: psn})
	}
}

// Unready reports whether a message came before any receive was posted for it.
func (q *QP) Unready() bool { return q.unready }

// TraceNotReady tells of a message that begins to wait for a receive of receiver's, nil: c's
// own queue pair.
func (c *Connection) TraceNotReady(receiver *QP) {
	q := c.QP
	if q == nil {
		return
	}
	if receiver == nil {
		receiver = q
	}
	receiver.unready = receiver.unready || receiver.RQ.untouched()
	q.t.note(q.Client, abi.TraceEvent{Kind: abi.TraceNotReady, QPN: q.QPN})
}
