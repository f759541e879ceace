package qp

import (
	"urdma/reason"
	"urdma/urdmad/core/mem"
	"urdma/verbs/abi"
)

// Interceptor may change what becomes of a client's work and of its peers' messages; on the
// worker's thread. A client without one pays a comparison in each place.
type Interceptor interface {
	// Posted is told of send i, enum ibv_wr_opcode, which was fetched: SendWR.Fail fails it.
	Posted(q *QP, i, opcode uint32)
	// Connected is told of a connection that stands. Earlier sends wait, from Next to Tail.
	Connected(q *QP)
	// Message is asked of each Read and atomic of the peer's, and of each Send that finds a
	// receive in from, before it has done anything: of a Send the client whose receive it is.
	// A refusal needs QP.Refuse.
	Message(q *QP, m Message, from *RecvQueue) Verdict
	// Write is asked of each piece of a peer's Write before it is placed at va of r, which
	// is nil for a Write of no bytes. WriteEnds tells that all of the Write was placed.
	Write(q *QP, r *mem.Region, va uint64, data []byte) Verdict
	WriteEnds(q *QP)
	// Notify is asked of each completion event. It reports whether the event is kept back:
	// Table.Notify sends it later.
	Notify(c *CQ) (kept bool)
}

// Message is a kind of message of the peer's.
type Message uint8

// The kinds.
const (
	MessageSend Message = iota // takes a receive
	MessageRead
	MessageAtomic
)

// Fail has a send that has not left fail with a status, enum ibv_wc_status, in its turn.
func (wr *SendWR) Fail(status uint32, why reason.Number) {
	if wr.State == SendQueued {
		wr.State, wr.status, wr.vendor = SendFailed, status, uint32(why)
	}
}

// FailNext takes the next receive of from and completes it with a status, enum
// ibv_wc_status, as one that is wrong.
func (r *Receive) FailNext(from *RecvQueue, status uint32, why reason.Number) Verdict {
	var rqe abi.RQE
	i, ok := from.look(&rqe, nil)
	if !ok {
		return Verdict{Is: NoReceive}
	}
	r.begin(from, rqe.WRID, i)
	r.wrong(status, why)
	return Verdict{Is: BadReceive}
}

// Refuse notes why a message is refused with which nothing is wrong.
func (q *QP) Refuse(why reason.Number) { q.found = Found{Given: why} }
