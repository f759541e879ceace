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

	"github.com/coreos/go-systemd/v22/journal"
)

// identifier is the name in journalctl -t and in the lines themselves.
const identifier = "urdmad"

// fieldPrefix separates our keys from the journal's own fields (systemd.journal-fields(7)).
const fieldPrefix = "URDMA_"

// maxField is the longest name of a field that the journal accepts.
const maxField = 64

// StderrIsJournal reports whether standard error is connected to the journal.
func StderrIsJournal() bool {
	is, err := journal.StderrIsJournalStream()
	return err == nil && is
}

// JournalRuns reports whether a journal is running.
func JournalRuns() bool { return journal.Enabled() }

// Line is a log record in the journal's form.
type Line struct {
	text     string
	priority journal.Priority
	fields   map[string]string
}

// Send sends the line to the journal, or writes it to standard error if that fails.
func (l Line) Send() {
	if err := journal.Send(l.text, l.priority, l.fields); err != nil {
		fmt.Fprintf(os.Stderr, "<%d>%s (journal: %v)\n", l.priority, l.text, err) // sd-daemon(3)
	}
}

// SendLost logs the number of lines that were lost because the journal was too slow.
func SendLost(lines uint64) {
	Line{fmt.Sprintf("%d log lines lost: the journal took them too slowly", lines), journal.PriWarning,
		map[string]string{"SYSLOG_IDENTIFIER": identifier}}.Send()
}

// NewHandler returns a slog.Handler that converts each record of at least level into a Line, with its priority and
// its attributes as fields, and passes it to put.
func NewHandler(level slog.Leveler, put func(Line)) slog.Handler {
	return &handler{put: put, level: level}
}

// handler keeps the attributes of a logger made by With in both their forms.
type handler struct {
	put    func(Line)
	level  slog.Leveler
	group  string // "a.b." inside the groups a and b
	suffix string // " key=value …" for the message
	fields map[string]string
}

func (h *handler) Enabled(_ context.Context, l slog.Level) bool { return l >= h.level.Level() }

// Handle implements slog.Handler.
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
	h.put(Line{text, priority(r.Level), n.fields})
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

// add appends one attribute to the message, for people, and as a field of its own, for searches.
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

// quoted quotes text that is not a plain word.
func quoted(text string) string {
	odd := func(r rune) bool { return r <= ' ' || r == '"' || r == '=' || !strconv.IsPrint(r) }
	if text == "" || strings.ContainsFunc(text, odd) {
		return strconv.Quote(text)
	}
	return text
}

// fieldName turns "peer.udp-port" into URDMA_PEER_UDP_PORT.
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

// priority is the syslog(3) priority of a level.
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
