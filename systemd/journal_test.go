package systemd

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"testing/slogtest"
	"time"

	"github.com/coreos/go-systemd/v22/journal"
)

func TestJournalLines(t *testing.T) {
	var got []Line
	log := slog.New(NewHandler(slog.LevelInfo, func(l Line) { got = append(got, l) }))
	log.Debug("not this")
	log.Info("urdmad is ready", "ports", 2, "socket", "/run/urdma/urdmad.sock")
	log.With("client", `"rping"[7]`).WithGroup("peer").Warn("lost", slog.Group("udp", "port-number", 4791), "error",
		errors.New("a b"))
	log.Error("two\nlines", "name", "x\nPRIORITY=0")
	if len(got) != 3 {
		t.Fatalf("got %d lines: %v", len(got), got)
	}
	for i, want := range []Line{
		{`urdmad is ready ports=2 socket=/run/urdma/urdmad.sock`, journal.PriInfo,
			map[string]string{"URDMA_PORTS": "2", "URDMA_SOCKET": "/run/urdma/urdmad.sock"}},
		{`lost client="\"rping\"[7]" peer.udp.port-number=4791 peer.error="a b"`, journal.PriWarning,
			map[string]string{"URDMA_CLIENT": `"rping"[7]`, "URDMA_PEER_UDP_PORT_NUMBER": "4791", "URDMA_PEER_ERROR": "a b"}},
		{"two\nlines name=\"x\\nPRIORITY=0\"", journal.PriErr, map[string]string{"URDMA_NAME": "x\nPRIORITY=0"}},
	} {
		got := got[i]
		if got.text != want.text || got.priority != want.priority {
			t.Errorf("line %d: %q of priority %d, expected %q of %d", i, got.text, got.priority, want.text, want.priority)
		}
		want.fields["SYSLOG_IDENTIFIER"] = "urdmad"
		if !strings.HasSuffix(got.fields["CODE_FILE"], "journal_test.go") || got.fields["CODE_LINE"] == "" {
			t.Errorf("line %d comes from %q:%q", i, got.fields["CODE_FILE"], got.fields["CODE_LINE"])
		}
		for _, code := range []string{"CODE_FILE", "CODE_LINE", "CODE_FUNC"} {
			delete(got.fields, code)
		}
		if !maps.Equal(got.fields, want.fields) {
			t.Errorf("line %d: fields %v, expected %v", i, got.fields, want.fields)
		}
	}
}

func TestFieldNames(t *testing.T) {
	for key, want := range map[string]string{"qp": "URDMA_QP", "ports[0].mtu": "URDMA_PORTS_0__MTU",
		"größe":                  "URDMA_GR__E",
		strings.Repeat("x", 100): "URDMA_" + strings.Repeat("X", 58)} {
		if got := fieldName(key); got != want {
			t.Errorf("%q became %q, expected %q", key, got, want)
		}
	}
}

// TestHandlerContract runs slog's own test of handlers.
func TestHandlerContract(t *testing.T) {
	var got []Line
	var times []time.Time
	err := slogtest.TestHandler(timed{NewHandler(slog.LevelDebug, func(l Line) { got = append(got, l) }), &times},
		func() []map[string]any {
			var out []map[string]any
			for i, l := range got {
				m := parsed(l)
				if !times[i].IsZero() {
					m[slog.TimeKey] = times[i]
				}
				out = append(out, m)
			}
			return out
		})
	if err != nil {
		t.Error(err)
	}
}

// timed adds each record's time, which slog's test demands: the handler sends none, since the journal stamps lines
// itself.
type timed struct {
	slog.Handler
	times *[]time.Time
}

func (h timed) Handle(ctx context.Context, r slog.Record) error {
	*h.times = append(*h.times, r.Time)
	return h.Handler.Handle(ctx, r)
}

func (h timed) WithAttrs(a []slog.Attr) slog.Handler { return timed{h.Handler.WithAttrs(a), h.times} }
func (h timed) WithGroup(name string) slog.Handler   { return timed{h.Handler.WithGroup(name), h.times} }

// parsed rebuilds the nested attributes from the key=value words of a message.
func parsed(l Line) map[string]any {
	out := map[string]any{slog.LevelKey: l.priority}
	words := strings.Fields(l.text)
	out[slog.MessageKey] = words[0]
	for _, w := range words[1:] {
		key, value, _ := strings.Cut(w, "=")
		m, names := out, strings.Split(key, ".")
		for _, g := range names[:len(names)-1] {
			if _, ok := m[g]; !ok {
				m[g] = map[string]any{}
			}
			m = m[g].(map[string]any)
		}
		m[names[len(names)-1]] = value
	}
	return out
}
