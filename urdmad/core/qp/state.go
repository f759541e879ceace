package qp

import (
	"urdma/reason"
	"urdma/urdmad/core/mem"
	"urdma/verbs/abi"
)

// RDMAConnectAccess are the rights that a queue pair grants its peer until
// MODIFY_QP says otherwise: those that rdma_cm gives.
const RDMAConnectAccess = mem.LocalWrite | mem.RemoteWrite | mem.RemoteRead | mem.RemoteAtomic

// Asynchronous events of a queue pair (ibv_get_async_event(3)).
const (
	EventFatal   = abi.EventQPFatal
	EventRequest = abi.EventQPReqErr
	EventAccess  = abi.EventQPAccessErr
	EventDrained = abi.EventSQDrained
)

// State is enum ibv_qp_state.
func (q *QP) State() uint32 { return q.state }

// Connectable reports whether a connection of rdma_cm can be started on the queue
// pair: it exists, is of a type that has connections, has none, and is in RESET or
// INIT. One of type UC gets its carrier from ibv_modify_qp.
func (q *QP) Connectable() bool {
	return q.Type != abi.QPTypeUC && q.Type != abi.QPTypeUD && !q.removed && q.carrier == nil && (q.state == abi.QPSReset || q.state == abi.QPSInit)
}

// Receives reports whether messages of the peer may arrive in a state: RTR and
// beyond.
func Receives(state uint32) bool {
	return state == abi.QPSRTR || state == abi.QPSRTS || state == abi.QPSSQD || state == abi.QPSSQE
}

// Attach makes c, whose connection has begun, the queue pair's carrier and takes
// up what was posted. Messages are numbered from 1 again. A connection of
// rdma_cm moves the queue pair to RTS; one by number finds it in RTR or later.
func (q *QP) Attach(c Carrier) {
	q.carrier, q.acked = c, 0
	if conn := c.Common(); !conn.ByNumber {
		q.moveTo(abi.QPSRTS)
		q.Attr.MaxRdAtomic, q.Attr.MaxDestRdAtomic = uint32(conn.ORD), uint32(conn.IRD)
	}
	q.SQ.connect(maxReads(&q.Attr, c), c.Common().PeerAccepts)
	if by := q.Client.Interceptor; by != nil {
		by.Connected(q)
	}
	q.SQ.more = true // posts are fetched in this turn, but not before the connection stands: they may end it
	q.t.Ready(q)
}

// maxReads is how many Reads may be open. A peer that serves none at all refuses
// them itself.
func maxReads(a *abi.QPAttr, c Carrier) uint16 {
	most := a.MaxRdAtomic
	if c != nil && c.Common().ByNumber {
		most = min(most, uint32(max(c.Common().ORD, 1)))
	}
	return uint16(most)
}

// Await makes c, which has no connection yet, the carrier of a queue pair in RTR
// or later.
func (t *Table) Await(q *QP, c Carrier) {
	q.carrier = c
	q.SQ.accepts = ImmediateData | Atomics | XRC // what is posted is fetched, and such a peer is always ours
	t.Ready(q)
}

// Serve makes c, which needs no connection, the carrier of a queue pair in RTR or
// later.
func (t *Table) Serve(q *QP, c Carrier) {
	q.carrier, q.acked = c, 0
	q.SQ.connect(0, c.Common().PeerAccepts)
	q.SQ.more = true
	t.Ready(q)
}

// Detach makes the queue pair forget its carrier, which calls it.
func (q *QP) Detach() { q.carrier = nil }

// PeerLeft is for the carrier of a connection by number that its peer has
// ended. Such a queue pair keeps its state and its queues, as InfiniBand's do,
// and its carrier is detached. False: it is in error, or a send of its has
// failed, and PeerLeft has flushed it.
func (t *Table) PeerLeft(q *QP) bool {
	if !Receives(q.state) || q.SQ.failed {
		q.Flush(reason.PeerLeft)
		return false
	}
	q.Recv.Interrupt()
	q.Detach()
	return true
}

// SendsBegun reports whether sends have begun. If the peer ends a connection by number then, nobody answers
// them, and they must not continue on a later connection: parts of them may have been executed.
func (q *QP) SendsBegun() bool { return !q.SQ.untouched() }

// reset makes the queue pair, whose work was abandoned, as good as new.
func (q *QP) reset() {
	q.abandoned = false
	q.SQ.reset()
	q.RQ.reset()
	q.moveTo(abi.QPSReset)
	q.Attr = abi.QPAttr{QPAccessFlags: RDMAConnectAccess}
	q.heard = false
	q.jobs.lost = 0
	q.found, q.wrong = Found{}, Element{}
}

// heardFrom is called when something of the peer's arrives. The program of a queue
// pair that is still in RTR is told once: it may move to RTS on the strength of it
// (InfiniBand vol. 1).
func (t *Table) heardFrom(q *QP) {
	if q.state == abi.QPSRTR && !q.heard && q.Type != abi.QPTypeUD {
		q.heard = true
		t.SendAsync(q, abi.EventCommEst)
	}
}

// Fail is for errors that no work request stands for: the queue pair goes to the
// error state, its connection ends, and the client gets an asynchronous event.
func (q *QP) Fail(event uint32, why reason.Number) {
	if q.removed || q.state == abi.QPSErr {
		return
	}
	q.FlushWithEvent(event, why)
	if q.carrier != nil {
		q.carrier.Failed()
	}
}

// FlushWithEvent moves the queue pair to the error state for a carrier that is
// ending its connection, and tells the client of it. What the last step of arrive.go
// found explains why.
func (q *QP) FlushWithEvent(event uint32, why reason.Number) {
	if q.found.Is == BadReceive {
		why = q.found.Local
	}
	if q.state != abi.QPSErr {
		q.because(why, nil, abi.StatusSuccess)
	}
	q.Flush(why)
	q.t.SendAsync(q, event)
}

// SendAsync sends the queue pair's programs an asynchronous event, enum ibv_event_type.
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

// user is the queue pair as memory knows it.
func (q *QP) user() mem.User { return mem.User{PD: q.PD, Stream: q.QPN} }
