package trace

import (
	"slices"
	"time"

	"urdma/event"
	"urdma/urdma/capture"
	"urdma/verbs/abi"
)

// Only passes the events of some kinds to an output; without kinds, all events.
func Only(kinds []string, to Output) capture.Sink { return &sink{kinds: kinds, to: to} }

// Event is an event of a program, or a packet.
type Event struct {
	event.Event
	Packet *Packet `json:"packet,omitempty"` // of kind PACKET
}

// eventOf makes an Event from a record of a capture.
func eventOf(r *abi.CaptureRecord, body, note []byte) (Event, error) {
	at := time.Unix(0, int64(r.TimeNs))
	if r.Kind != abi.CaptureFrame {
		e, err := event.Decode(at, body, note)
		return Event{Event: e}, err
	}
	p := packetOf(r, body, note)
	return Event{event.Event{Time: at, Kind: "PACKET", QPN: r.QPN, What: p.String(), Bytes: r.FrameBytes}, p}, nil
}

// Output is a destination of events.
type Output interface {
	event(e *Event, r *abi.CaptureRecord, frame, note []byte) error
	lost(n uint64) error
	flush() error
	close() error
}

type sink struct {
	kinds []string
	to    Output
}

func (s *sink) Write(r *abi.CaptureRecord, frame, note []byte, lost uint64) error {
	if lost > 0 {
		if err := s.to.lost(lost); err != nil {
			return err
		}
	}
	e, err := eventOf(r, frame, note)
	if err != nil || len(s.kinds) > 0 && !slices.Contains(s.kinds, e.Kind) {
		return err
	}
	return s.to.event(&e, r, frame, note)
}

func (s *sink) Flush() error { return s.to.flush() }

func (s *sink) Close(late uint64) (err error) {
	if late > 0 {
		err = s.to.lost(late)
	}
	if closeErr := s.to.close(); err == nil {
		err = closeErr
	}
	return err
}
