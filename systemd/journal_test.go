package systemd

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/slogtest"
	"time"

	"github.com/coreos/go-systemd/v22/journal"
)

// records keeps what would have gone to the journal.
type records struct {
	mu   sync.Mutex
	got  []line
	wait chan struct{} // nil: take lines at once
}

func (r *records) send(text string, p journal.Priority, fields map[string]string) error {
	if r.wait != nil {
		<-r.wait
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got = append(r.got, line{text, p, maps.Clone(fields)})
	return nil
}

func TestJournalLines(t *testing.T) {
	var r records
	j := startJournal(r.send)
	log := slog.New(j.Handler(slog.LevelInfo))
	log.Debug("not this")
	log.Info("urdmad is ready", "ports", 2, "socket", "/run/urdma/urdmad.sock")
	log.With("client", `"rping"[7]`).WithGroup("peer").Warn("lost", slog.Group("udp", "port-number", 4791), "error", errors.New("a b"))
	log.Error("two\nlines", "name", "x\nPRIORITY=0")
	j.Close()
	if len(r.got) != 3 {
		t.Fatalf("got %d lines: %v", len(r.got), r.got)
	}
	for i, want := range []line{
		{`urdmad is ready ports=2 socket=/run/urdma/urdmad.sock`, journal.PriInfo,
			map[string]string{"URDMA_PORTS": "2", "URDMA_SOCKET": "/run/urdma/urdmad.sock"}},
		{`lost client="\"rping\"[7]" peer.udp.port-number=4791 peer.error="a b"`, journal.PriWarning,
			map[string]string{"URDMA_CLIENT": `"rping"[7]`, "URDMA_PEER_UDP_PORT_NUMBER": "4791", "URDMA_PEER_ERROR": "a b"}},
		{"two\nlines name=\"x\\nPRIORITY=0\"", journal.PriErr, map[string]string{"URDMA_NAME": "x\nPRIORITY=0"}},
	} {
		got := r.got[i]
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

// TestStandingJournal: whoever logs goes on, and what was lost is said.
func TestStandingJournal(t *testing.T) {
	r := records{wait: make(chan struct{})}
	j := startJournal(r.send)
	log := slog.New(j.Handler(slog.LevelInfo))
	const more = 100
	for range queued + more { // hangs if one of them waits
		log.Info("line")
	}
	close(r.wait)
	j.Close()
	lost := 0
	for _, l := range r.got {
		if strings.Contains(l.text, "log lines lost") {
			lost++
		}
	}
	if lost != 1 || len(r.got) < queued {
		t.Errorf("%d lines arrived, %d of them told of losses; expected at least %d and 1", len(r.got), lost, queued)
	}
}

// TestCloseDoesNotHang: a journal that never takes a line must not keep a
// daemon from ending.
func TestCloseDoesNotHang(t *testing.T) {
	r := records{wait: make(chan struct{})}
	j := startJournal(r.send)
	for range queued + 2 {
		slog.New(j.Handler(slog.LevelInfo)).Info("line")
	}
	ended := make(chan struct{})
	go func() { j.Close(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Error("Close still waits")
	}
	close(r.wait)
}

func TestFieldNames(t *testing.T) {
	for key, want := range map[string]string{"qp": "URDMA_QP", "ports[0].mtu": "URDMA_PORTS_0__MTU", "größe": "URDMA_GR__E",
		strings.Repeat("x", 100): "URDMA_" + strings.Repeat("X", 58)} {
		if got := fieldName(key); got != want {
			t.Errorf("%q became %q, expected %q", key, got, want)
		}
	}
}

// TestHandlerContract is what slog asks of every handler.
func TestHandlerContract(t *testing.T) {
	var r records
	j := startJournal(r.send)
	var times []time.Time
	err := slogtest.TestHandler(timed{j.Handler(slog.LevelDebug), &times}, func() []map[string]any {
		j.Close()
		var out []map[string]any
		for i, l := range r.got {
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

// timed keeps each record's time, which the contract asks for: the handler
// sends none, since the journal stamps lines itself.
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

// parsed rebuilds the nested form from a message's key=value words.
func parsed(l line) map[string]any {
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
