package systemd

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coreos/go-systemd/v22/journal"
)

// identifier is what journalctl -t and the lines themselves call us.
const identifier = "urdmad"

// fieldPrefix keeps our keys apart from the journal's own fields
// (systemd.journal-fields(7)).
const fieldPrefix = "URDMA_"

// maxField is the longest name of a field that the journal takes.
const maxField = 64

// StderrIsJournal tells whether standard error leads to the journal.
func StderrIsJournal() bool {
	is, err := journal.StderrIsJournalStream()
	return err == nil && is
}

// JournalRuns tells whether there is a journal to send to.
func JournalRuns() bool { return journal.Enabled() }

// queued is how many lines may wait for the journal. Lines come from poll
// loops too, and a journal that stands still must not hold one up, so what
// doesn't fit is counted and dropped.
const queued = 1024

// Journal sends log records to the journal, each with its priority and its
// attributes as fields. Close it, or its last lines may be lost.
type Journal struct {
	lines chan line
	lost  atomic.Uint64
	done  chan struct{}
	once  sync.Once
	send  func(message string, p journal.Priority, fields map[string]string) error
}

type line struct {
	text     string
	priority journal.Priority
	fields   map[string]string
}

// OpenJournal starts the goroutine that sends.
func OpenJournal() *Journal { return startJournal(journal.Send) }

func startJournal(send func(string, journal.Priority, map[string]string) error) *Journal {
	j := &Journal{lines: make(chan line, queued), done: make(chan struct{}), send: send}
	go j.run()
	return j
}

func (j *Journal) run() {
	defer close(j.done)
	for l := range j.lines {
		if l.text == "" { // from Close
			return
		}
		j.sendLine(l)
		if n := j.lost.Swap(0); n > 0 {
			j.sendLine(line{fmt.Sprintf("%d log lines lost: the journal took them too slowly", n), journal.PriWarning,
				map[string]string{"SYSLOG_IDENTIFIER": identifier}})
		}
	}
}

func (j *Journal) sendLine(l line) {
	if err := j.send(l.text, l.priority, l.fields); err != nil {
		fmt.Fprintf(os.Stderr, "<%d>%s (journal: %v)\n", l.priority, l.text, err) // sd-daemon(3)
	}
}

// closing is how long Close waits for a journal that stands still.
const closing = time.Second

// Close sends what waits. Records after it are dropped.
func (j *Journal) Close() {
	j.once.Do(func() {
		limit := time.NewTimer(closing)
		defer limit.Stop()
		select {
		case j.lines <- line{}:
		case <-limit.C:
			return
		}
		select {
		case <-j.done:
		case <-limit.C:
		}
	})
}

// Handler returns a slog.Handler for records of level and above.
func (j *Journal) Handler(level slog.Leveler) slog.Handler { return &handler{j: j, level: level} }

// handler has the attributes of a logger made by With already in their two
// forms.
type handler struct {
	j      *Journal
	level  slog.Leveler
	group  string // "a.b." inside groups a and b
	suffix string // " key=value …" for the message
	fields map[string]string
}

func (h *handler) Enabled(_ context.Context, l slog.Level) bool { return l >= h.level.Level() }

// Handle queues the record and never waits.
func (h *handler) Handle(_ context.Context, r slog.Record) error {
	n := h.clone()
	n.fields["SYSLOG_IDENTIFIER"] = identifier
	n.addSource(r.PC)
	r.Attrs(func(a slog.Attr) bool {
		n.add(n.group, a)
		return true
	})
	text := r.Message + n.suffix
	if text == "" {
		text = "-"
	}
	select {
	case h.j.lines <- line{text, priority(r.Level), n.fields}:
	default:
		h.j.lost.Add(1)
	}
	return nil
}

func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	n := h.clone()
	for _, a := range attrs {
		n.add(n.group, a)
	}
	return n
}

func (h *handler) WithGroup(name string) slog.Handler {
	n := h.clone()
	if name != "" {
		n.group += name + "."
	}
	return n
}

func (h *handler) clone() *handler {
	n := *h
	n.fields = make(map[string]string, len(h.fields)+8)
	maps.Copy(n.fields, h.fields)
	return &n
}

// add puts one attribute into the message, for who reads lines, and into a
// field of its own, for who searches.
func (h *handler) add(group string, a slog.Attr) {
	v := a.Value.Resolve()
	if a.Key == "" && v.Kind() != slog.KindGroup {
		return
	}
	if v.Kind() == slog.KindGroup {
		if a.Key != "" {
			group += a.Key + "."
		}
		for _, inner := range v.Group() {
			h.add(group, inner)
		}
		return
	}
	text := v.String()
	h.suffix += " " + group + a.Key + "=" + quoted(text)
	h.fields[fieldName(group+a.Key)] = text
}

func (h *handler) addSource(pc uintptr) {
	if pc == 0 {
		return
	}
	f, _ := runtime.CallersFrames([]uintptr{pc}).Next()
	h.fields["CODE_FILE"], h.fields["CODE_LINE"], h.fields["CODE_FUNC"] = f.File, strconv.Itoa(f.Line), f.Function
}

// quoted leaves plain words as they are.
func quoted(text string) string {
	odd := func(r rune) bool { return r <= ' ' || r == '"' || r == '=' || !strconv.IsPrint(r) }
	if text == "" || strings.ContainsFunc(text, odd) {
		return strconv.Quote(text)
	}
	return text
}

// fieldName makes "peer.udp-port" URDMA_PEER_UDP_PORT.
func fieldName(key string) string {
	name := fieldPrefix + strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, key)
	return name[:min(len(name), maxField)]
}

// priority is syslog(3)'s.
func priority(l slog.Level) journal.Priority {
	switch {
	case l >= slog.LevelError:
		return journal.PriErr
	case l >= slog.LevelWarn:
		return journal.PriWarning
	case l >= slog.LevelInfo:
		return journal.PriInfo
	}
	return journal.PriDebug
}
