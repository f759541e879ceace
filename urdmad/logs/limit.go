package logs

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// A message may come burst times at once and then every interval; of what is
// beyond, the next line says how many there were.
const (
	burst    = 100
	interval = 100 * time.Millisecond
	maxKinds = 512 // messages whose counts are kept
)

// Limit is a slog.Handler that bounds how often one message comes.
type Limit struct {
	next  slog.Handler
	kinds *kinds
}

// kinds are the counts of all messages; derived handlers share them.
type kinds struct {
	mu  sync.Mutex
	of  map[string]*kind
	now func() time.Time
}

// kind is a token bucket.
type kind struct {
	tokens  float64
	at      time.Time
	leftOut int
}

// NewLimit passes on to next.
func NewLimit(next slog.Handler) *Limit {
	return &Limit{next, &kinds{of: map[string]*kind{}, now: time.Now}}
}

// Enabled is slog.Handler's.
func (l *Limit) Enabled(ctx context.Context, level slog.Level) bool {
	return l.next.Enabled(ctx, level)
}

// Handle is slog.Handler's. A message is known by its text without attributes.
func (l *Limit) Handle(ctx context.Context, r slog.Record) error {
	leftOut, ok := l.kinds.take(r.Message)
	if !ok {
		return nil
	}
	if leftOut > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int("left_out_before", leftOut))
	}
	return l.next.Handle(ctx, r)
}

func (k *kinds) take(message string) (leftOut int, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.now()
	m := k.of[message]
	if m == nil {
		if len(k.of) >= maxKinds {
			clear(k.of)
		}
		m = &kind{tokens: burst, at: now}
		k.of[message] = m
	}
	m.tokens = min(burst, m.tokens+float64(now.Sub(m.at))/float64(interval))
	m.at = now
	if m.tokens < 1 {
		m.leftOut++
		return 0, false
	}
	m.tokens--
	leftOut, m.leftOut = m.leftOut, 0
	return leftOut, true
}

// WithAttrs is slog.Handler's.
func (l *Limit) WithAttrs(a []slog.Attr) slog.Handler { return &Limit{l.next.WithAttrs(a), l.kinds} }

// WithGroup is slog.Handler's.
func (l *Limit) WithGroup(name string) slog.Handler { return &Limit{l.next.WithGroup(name), l.kinds} }
