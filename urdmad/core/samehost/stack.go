package samehost

import (
	"log/slog"

	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/qp"
	"urdma/urdmad/core/rdmap"
)

// Stack is all same-host connections of one worker.
type Stack struct {
	Stats Stats

	clock       *clock.Clock
	table       *qp.Table
	streams     *rdmap.Stats
	manager     qp.Manager
	log         *slog.Logger
	answerDelay clock.Time // see delay.go
	observer    Observer   // nil while nobody looks

	deathTimeout clock.Time
	cuts         *cuts
}

// Stats counts what no connection counts.
type Stats struct {
	Messages         uint64 `counter:"local_messages"`
	Bytes            uint64 `counter:"local_bytes"`        // of those
	ReceiverNotReady uint64 `counter:"receiver_not_ready"` // messages that waited for a receive
}

// Observer is told what a wire would carry for the work request at index i of a
// connection's send queue.
type Observer interface {
	// Request: it was carried up to its Offset; a Read was asked for.
	Request(c *Conn, i uint32)
	// Immediate: its immediate data followed.
	Immediate(c *Conn, i uint32)
	// Response: of the answer to a Read, src came to c, which ends at its Got.
	Response(c *Conn, i uint32, src []byte)
	// Original: the answer to an atomic came to c.
	Original(c *Conn, i uint32, value uint64)
	// Refusal: why it was refused.
	Refusal(c *Conn, i uint32, code rdmap.Code)
	// End is c's end of stream.
	End(c *Conn)
}

// NewStack returns a Stack without connections. answerDelay is how long the
// completion of a Write waits for an answer while two programs answer at once.
func NewStack(t *qp.Table, streams *rdmap.Stats, log *slog.Logger, answerDelay clock.Time) *Stack {
	return &Stack{clock: t.Clock, table: t, streams: streams, log: log, answerDelay: answerDelay}
}

// SetManager names the manager of connections; before the first.
func (s *Stack) SetManager(m qp.Manager) { s.manager = m }

// SetObserver has o told of everything from now on; nil ends that.
func (s *Stack) SetObserver(o Observer) { s.observer = o }
