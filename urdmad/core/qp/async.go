package qp

import "urdma/verbs/abi"

// Asynchronous events of a queue pair (ibv_get_async_event(3)).
const (
	EventFatal   = abi.EventQPFatal
	EventRequest = abi.EventQPReqErr
	EventAccess  = abi.EventQPAccessErr
	EventDrained = abi.EventSQDrained
)

// SendAsync sends an asynchronous event, enum ibv_event_type, to the queue pair's programs.
func (t *Table) SendAsync(q *QP, event uint32) {
	if q.leaving {
		return
	}
	t.tellAsync(q.Client, q.QPN, event)
	ev := abi.AsyncEvent{EventType: event, Handle: q.Handle}
	if q.Domain == nil {
		t.send(q.Async, abi.Bytes(&ev))
	}
	for _, r := range q.References {
		ev.Handle = r.Handle
		t.send(r.Async, abi.Bytes(&ev))
	}
}

// heardFrom is called when a message of the peer arrives. If the queue pair is still in RTR, its
// program gets IBV_EVENT_COMM_EST once, and may then move to RTS (InfiniBand vol. 1).
func (t *Table) heardFrom(q *QP) {
	if q.state == abi.QPSRTR && !q.heard && !q.unconnected() {
		q.heard = true
		t.SendAsync(q, abi.EventCommEst)
	}
}

// tellLast raises IBV_EVENT_QP_LAST_WQE_REACHED once the last receive taken from the shared
// receive queue has completed: no further one will complete for this queue pair.
func (t *Table) tellLast(q *QP) {
	if q.jobs.tell && len(q.jobs.deferred) == 0 {
		q.jobs.tell = false
		t.SendAsync(q, abi.EventQPLastWQEReached)
	}
}

// tellDrained raises IBV_EVENT_SQ_DRAINED once for each move to SQD that asked for it.
func (t *Table) tellDrained(q *QP) {
	if q.SQ.draining && q.Attr.EnSQDAsyncNotify != 0 && q.SQ.untouched() {
		q.Attr.EnSQDAsyncNotify = 0
		t.SendAsync(q, EventDrained)
	}
}
