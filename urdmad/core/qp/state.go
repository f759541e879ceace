package qp

import (
	"urdma/reason"
	"urdma/verbs/abi"
)

// State returns the state, enum ibv_qp_state.
func (q *QP) State() uint32 { return q.state }

// Connectable reports whether an rdma_cm connection can be started on the queue pair: it exists,
// has a connected type and no connection, and is in RESET or INIT. A UC queue pair gets its
// carrier from ibv_modify_qp.
func (q *QP) Connectable() bool {
	return q.Type != abi.QPTypeUC && !q.unconnected() && !q.removed && q.carrier == nil &&
		(q.state == abi.QPSReset || q.state == abi.QPSInit)
}

// unconnected reports whether the queue pair's type has no connections at all.
func (q *QP) unconnected() bool { return q.Type == abi.QPTypeUD || q.Type == abi.QPTypeRawPacket }

// Receives reports whether the peer's messages may arrive in a state: RTR and later.
func Receives(state uint32) bool {
	return state == abi.QPSRTR || state == abi.QPSRTS || state == abi.QPSSQD || state == abi.QPSSQE
}

// Attach makes c, whose connection has begun, the queue pair's carrier, and sends waiting posts.
// Message numbers restart at 1. A connection of rdma_cm moves the queue pair to RTS; a connection
// set up by ibv_modify_qp finds it in RTR or later.
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
	q.SQ.more = true // fetch posts in this turn, but after this setup: a post may end the connection
	q.t.Ready(q)
}

// maxReads returns the limit of outstanding Reads. A peer that serves no Reads refuses them
// itself.
func maxReads(a *abi.QPAttr, c Carrier) uint16 {
	most := a.MaxRdAtomic
	if c != nil && c.Common().ByNumber {
		most = min(most, uint32(max(c.Common().ORD, 1)))
	}
	return uint16(most)
}

// Await makes c, which has no connection yet, the carrier of a queue pair in RTR or later.
func (t *Table) Await(q *QP, c Carrier) {
	q.carrier = c
	// until the connection is there: posts are fetched, and such a peer is always a urdmad
	q.SQ.accepts = ImmediateData | Atomics | XRC
	t.Ready(q)
}

// Serve makes c, which needs no connection, the carrier of a queue pair in RTR or later.
func (t *Table) Serve(q *QP, c Carrier) {
	q.carrier, q.acked = c, 0
	q.SQ.connect(0, c.Common().PeerAccepts)
	q.SQ.more = true
	t.Ready(q)
}

// Detach removes the queue pair's reference to its carrier. The carrier calls it.
func (q *QP) Detach() { q.carrier = nil }

// PeerLeft is called by the carrier of a connection set up by ibv_modify_qp when the peer has
// ended it. The queue pair keeps its state and queues, as in InfiniBand, and the carrier is
// detached. It returns false if the queue pair is in error or one of its sends has failed; then
// it has been flushed.
func (t *Table) PeerLeft(q *QP) bool {
	if !Receives(q.state) || q.SQ.failed {
		q.Flush(reason.PeerLeft)
		return false
	}
	q.Recv.Interrupt()
	q.Detach()
	return true
}

// SendsBegun reports whether sends have begun. If the peer has ended the connection, nobody
// answers them, and a later connection must not repeat them, because parts of them may have been
// carried out.
func (q *QP) SendsBegun() bool { return !q.SQ.untouched() }

// reset returns the queue pair to its initial state. Its work was abandoned.
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

// Fail handles an error that belongs to no work request: the queue pair goes to the error state,
// its connection ends, and the client gets an asynchronous event.
func (q *QP) Fail(event uint32, why reason.Number) {
	if q.removed || q.state == abi.QPSErr {
		return
	}
	q.FlushWithEvent(event, why)
	if q.carrier != nil {
		q.carrier.Failed()
	}
}

// FlushWithEvent moves the queue pair to the error state, for a carrier that is ending its
// connection, and sends the client an asynchronous event. Facts that the last step of arrive.go
// has found may change the reason.
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
