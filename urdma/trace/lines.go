package trace

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"urdma/event"
	"urdma/verbs/abi"
)

// lines writes a line for each event.
type lines struct {
	w    *bufio.Writer
	json bool
}

// Text prints a line for each event: time, process, queue pair, kind, event.
func Text(w io.Writer) Output {
	l := &lines{w: bufio.NewWriter(w)}
	fmt.Fprintln(l.w, event.Head)
	return l
}

// JSON prints a JSON object per line for each event.
func JSON(w io.Writer) Output { return &lines{w: bufio.NewWriter(w), json: true} }

func (l *lines) event(e *Event, _ *abi.CaptureRecord, _, _ []byte) error {
	if l.json {
		return json.NewEncoder(l.w).Encode(e)
	}
	_, err := fmt.Fprintln(l.w, e.Timed())
	return err
}

func (l *lines) lost(n uint64) error {
	text := fmt.Sprintf("%d events and packets were lost for want of time to write them", n)
	if l.json {
		return json.NewEncoder(l.w).Encode(map[string]uint64{"lost": n})
	}
	_, err := fmt.Fprintln(l.w, strings.Repeat(" ", 18), text)
	return err
}

func (l *lines) flush() error { return l.w.Flush() }
func (l *lines) close() error { return l.w.Flush() }
