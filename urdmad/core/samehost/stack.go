package samehost

import (
	"log/slog"

	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/qp"
	"urdma/urdmad/core/rdmap"
)

// Stack has all same-host connections of one worker.
type Stack struct {
	Stats    Stats
	Observer Observer // nil: no connection is observed

	clock       *clock.Clock
	table       *qp.Table
	streams     *rdmap.Stats
	manager     qp.Manager
	log         *slog.Logger
	answerDelay clock.Time // see delay.go

	deathTimeout clock.Time
	cuts         *cuts
}

// Stats counts events that belong to no connection.
type Stats struct {
	Messages         uint64 `counter:"local_messages"`
	Bytes            uint64 `counter:"local_bytes"`        // bytes of those messages
	ReceiverNotReady uint64 `counter:"receiver_not_ready"` // messages that waited for a receive
}

// Observer is told what would be on the wire for the work request at index i of a connection's send queue.
type Observer interface {
	// Request: the request's data were sent up to its Offset, or a Read or an atomic was requested.
	Request(c *Conn, i uint32)
	// Immediate: its immediate data followed.
	Immediate(c *Conn, i uint32)
	// Response: src, a part of the answer to a Read, arrived at c; it ends at the work request's Got.
	Response(c *Conn, i uint32, src []byte)
	// Original: the answer to an atomic arrived at c.
	Original(c *Conn, i uint32, value uint64)
	// Refusal: the work request was refused with a code.
	Refusal(c *Conn, i uint32, code rdmap.Code)
	// End: c ended its stream.
	End(c *Conn)
}

// NewStack returns a Stack without connections. answerDelay is how long the completion of a Write waits for
// an answer while both programs answer at once.
func NewStack(t *qp.Table, streams *rdmap.Stats, log *slog.Logger, answerDelay clock.Time) *Stack {
	return &Stack{clock: t.Clock, table: t, streams: streams, log: log, answerDelay: answerDelay}
}

// SetManager sets the connection manager; call it before the first connection.
func (s *Stack) SetManager(m qp.Manager) { s.manager = m }
