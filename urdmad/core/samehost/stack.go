package samehost

import (
	"log/slog"

	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/qp"
	"urdma/urdmad/core/rdmap"
)

// Stack has all same-host connections of one worker.
type Stack struct {
	Stats Stats

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

// NewStack returns a Stack without connections. answerDelay is how long the completion of a Write waits for
// an answer while both programs answer at once.
func NewStack(t *qp.Table, streams *rdmap.Stats, log *slog.Logger, answerDelay clock.Time) *Stack {
	return &Stack{clock: t.Clock, table: t, streams: streams, log: log, answerDelay: answerDelay}
}

// SetManager sets the connection manager; call it before the first connection.
func (s *Stack) SetManager(m qp.Manager) { s.manager = m }
