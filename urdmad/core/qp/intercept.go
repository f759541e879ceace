package qp

import (
	"urdma/reason"
	"urdma/urdmad/core/mem"
)

// Interceptor lets a feature change the handling of a client's work and of its peers' messages.
// Calls come on the worker's thread. A client without an Interceptor costs one comparison at each
// place.
type Interceptor interface {
	// Posted is called when send i has been fetched; opcode is enum ibv_wr_opcode. SendWR.Fail
	// makes the send fail.
	Posted(q *QP, i, opcode uint32)
	// Connected is called when a connection is established. Sends posted before it are at Next to
	// Tail.
	Connected(q *QP)
	// Message is called for each Read and atomic of the peer, and for each Send that finds a
	// receive in from, before it has any effect. For a Send, the Interceptor is that of the
	// client that posted the receive. A refusal must call QP.Refuse.
	Message(q *QP, m Message, from *RecvQueue) Verdict
	// Write is called for each piece of a peer's Write before it is placed at va of r; r is nil
	// for a Write of 0 bytes. WriteEnds is called when all of the Write was placed.
	Write(q *QP, r *mem.Region, va uint64, data []byte) Verdict
	WriteEnds(q *QP)
	// Notify is called for each completion event. It reports whether the feature keeps the event
	// back, to send it later by Table.Notify.
	Notify(c *CQ) (kept bool)
}

// Message is a kind of message from the peer.
type Message uint8

// The message kinds.
const (
	MessageSend Message = iota // takes a receive
	MessageRead
	MessageAtomic
)

// Fail makes a send that has not left complete with a status, enum ibv_wc_status, when it is the
// oldest.
func (wr *SendWR) Fail(status uint32, why reason.Number) {
	if wr.State == SendQueued {
		wr.State, wr.status, wr.vendor = SendFailed, status, uint32(why)
	}
}

// Refuse records the reason for refusing a message that is itself valid.
func (q *QP) Refuse(why reason.Number) { q.found = Found{Given: why} }
