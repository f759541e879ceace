package logs

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
)

// Hex is a slog.Handler that prints queue pair numbers as libibverbs' programs and
// urdma show do, in hexadecimal.
type Hex struct{ slog.Handler }

// Handle is slog.Handler's.
func (h Hex) Handle(ctx context.Context, r slog.Record) error {
	n := slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	r.Attrs(func(a slog.Attr) bool {
		n.AddAttrs(hex(a))
		return true
	})
	return h.Handler.Handle(ctx, n)
}

// WithAttrs is slog.Handler's.
func (h Hex) WithAttrs(list []slog.Attr) slog.Handler {
	out := make([]slog.Attr, len(list))
	for i, a := range list {
		out[i] = hex(a)
	}
	return Hex{h.Handler.WithAttrs(out)}
}

// WithGroup is slog.Handler's.
func (h Hex) WithGroup(name string) slog.Handler { return Hex{h.Handler.WithGroup(name)} }

func hex(a slog.Attr) slog.Attr {
	if !strings.HasSuffix(a.Key, "qpn") || a.Value.Kind() != slog.KindUint64 {
		return a
	}
	return slog.String(a.Key, fmt.Sprintf("%06x", a.Value.Uint64()))
}
