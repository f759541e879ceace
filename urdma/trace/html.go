package trace

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"urdma/verbs/abi"
)

// page draws the events; %HEAD% and %EVENTS% are placeholders.
//
//go:embed page.html
var page string

// Head describes the urdmad whose events the page shows.
type Head struct {
	Host     string            `json:"host"`
	PID      int               `json:"pid"`
	Programs map[uint32]string `json:"programs"` // names of the programs that run when the trace begins, by PID
}

// html writes a page that draws the events as a sequence diagram.
type html struct {
	w    *bufio.Writer
	c    io.Closer
	rest string // the page behind the events
	base time.Time
	n    uint64 // number of events and losses written
	err  error
}

// HTML writes a page that needs no other file and no network, and closes w at the end.
func HTML(w io.WriteCloser, head Head) Output {
	before, rest, _ := strings.Cut(page, "%EVENTS%")
	h := &html{w: bufio.NewWriter(w), c: w, rest: rest}
	text, err := json.Marshal(head)
	if h.err = err; err == nil {
		_, h.err = h.w.WriteString(strings.Replace(before, "%HEAD%", string(text), 1))
	}
	return h
}

// drawn is an event in the page's format.
type drawn struct {
	At   int64  `json:"at"` // ns since the first event written; later events may be earlier in time
	Line string `json:"line"`
	WRID string `json:"wr_id,omitempty"` // replaces Event's: JavaScript's numbers have 53 bits
	*Event
}

func (h *html) event(e *Event, _ *abi.CaptureRecord, _, _ []byte) error {
	if h.n == 0 {
		h.base = e.Time
	}
	d := drawn{At: e.Time.Sub(h.base).Nanoseconds(), Line: e.Line(), Event: e}
	if e.WRID != nil {
		d.WRID = fmt.Sprintf("%#x", *e.WRID)
	}
	return h.put(&d)
}

func (h *html) lost(n uint64) error { return h.put(map[string]uint64{"lost": n}) }

// put writes a value as JSON with <, > and & escaped, so that it can't end the script element around it.
func (h *html) put(v any) error {
	text, err := json.Marshal(v)
	if err != nil || h.err != nil {
		return errors.Join(err, h.err)
	}
	if h.n++; h.n > 1 {
		text = append([]byte(",\n"), text...)
	}
	_, err = h.w.Write(text)
	return err
}

func (h *html) flush() error { return h.w.Flush() }

func (h *html) close() error {
	_, err := h.w.WriteString(h.rest)
	return errors.Join(h.err, err, h.w.Flush(), h.c.Close())
}
