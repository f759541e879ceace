package trace

import (
	"strings"

	"urdma/urdma/capture"
	"urdma/verbs/abi"
)

// pcapng writes packets, each with the preceding events as its comment.
type pcapng struct {
	to      capture.Sink
	pending []string
	missed  uint64
}

// Pcapng adds events to the packets in a capture's files.
func Pcapng(files capture.Sink) Output { return &pcapng{to: files} }

func (p *pcapng) event(e *Event, r *abi.CaptureRecord, frame, note []byte) error {
	if e.Kind != "PACKET" {
		p.pending = append(p.pending, e.Time.Format("15:04:05.000000000 ")+strings.TrimSpace(e.String()))
		return nil
	}
	if len(note) > 0 {
		p.pending = append(p.pending, string(note))
	}
	err := p.to.Write(r, frame, []byte(strings.Join(p.pending, "\n")), p.missed)
	p.pending, p.missed = p.pending[:0], 0
	return err
}

func (p *pcapng) lost(n uint64) error { p.missed += n; return nil }
func (p *pcapng) flush() error        { return p.to.Flush() }
func (p *pcapng) close() error        { return p.to.Close(p.missed) }
