package trace

import (
	"bufio"
	"encoding/json"
	"io"

	"urdma/verbs/abi"
)

// perfetto writes the trace event format, which ui.perfetto.dev and chrome://tracing open. Each process is a
// process there, each queue pair a thread.
type perfetto struct {
	w     *bufio.Writer
	c     io.Closer
	wrote bool
}

// Perfetto writes a file in the trace event format, and closes w at the end.
func Perfetto(w io.WriteCloser) Output { return &perfetto{w: bufio.NewWriter(w), c: w} }

// perfettoEvent is an event in that format; times are in microseconds.
type perfettoEvent struct {
	Name     string  `json:"name"`
	Category string  `json:"cat"`
	Phase    string  `json:"ph"` // X: event with a duration; i: instant
	Scope    string  `json:"s,omitempty"`
	Time     float64 `json:"ts"`
	Duration float64 `json:"dur,omitempty"`
	PID      uint32  `json:"pid"`
	TID      uint32  `json:"tid"`
	Args     any     `json:"args,omitempty"`
}

func (p *perfetto) event(e *Event, _ *abi.CaptureRecord, _, _ []byte) error {
	v := perfettoEvent{Name: e.What, Category: e.Kind, Phase: "i", Scope: "t", Time: float64(e.Time.UnixNano()) / 1000,
		PID: e.PID, TID: e.QPN, Args: e}
	switch {
	case e.Duration > 0:
		v.Phase, v.Scope, v.Duration = "X", "", float64(e.Duration)/1000
	case e.Kind == "BOOKMARK":
		v.Scope = "g" // through all lanes
	}
	return p.put(&v)
}

func (p *perfetto) put(v *perfettoEvent) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	begin := ",\n"
	if !p.wrote {
		begin, p.wrote = "[\n", true
	}
	_, err = p.w.WriteString(begin + string(text))
	return err
}

func (p *perfetto) lost(uint64) error { return nil } // the last line reports losses
func (p *perfetto) flush() error      { return p.w.Flush() }

func (p *perfetto) close() error {
	end := "\n]\n"
	if !p.wrote {
		end = "[]\n"
	}
	_, err := p.w.WriteString(end)
	if flushErr := p.w.Flush(); err == nil {
		err = flushErr
	}
	if closeErr := p.c.Close(); err == nil {
		err = closeErr
	}
	return err
}
