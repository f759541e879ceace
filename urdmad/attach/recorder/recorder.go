// Package recorder is the flight recorder: the last events of a client, kept always,
// so that they are there when something has failed. Events are those of a trace
// (abi.TraceEvent).
//
// It has what is rare: requests, states of queue pairs, asynchronous and rdma_cm
// events, failed completions, resent segments, waits for receives, bookmarks and
// reasons. Posts and completions are not copied here: they lie in the client's rings
// until they are overwritten. Packets are seen by captures alone.
//
// The package must not know sessions, queue pairs or how events are shown.
package recorder

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"urdma/urdmad/core/clock"
	"urdma/verbs/abi"
)

// Bounds of what one client's recorder holds: 80 KiB, of which a client that does little
// takes little.
const (
	maxEvents  = 128
	maxCalls   = 128
	maxReasons = 16
	maxWarned  = 32
	maxText    = 1000 // bytes, of a reason or a warning
)

// Event is one event, as a trace has it.
type Event struct {
	TimeNs int64 // since 1970
	abi.TraceEvent
	Text string // of a reason or a bookmark
}

// noted is an event with the worker's time.
type noted struct {
	at   clock.Time
	e    abi.TraceEvent
	text string
}

// Recorder has the events of one client. The zero value is empty. Its methods run on
// the worker's thread, unless they say otherwise.
type Recorder struct {
	events  ring[noted]
	reasons ring[noted]
	warned  ring[noted]

	mu    sync.Mutex // guards calls
	calls ring[Event]
}

// Note keeps an event.
func (r *Recorder) Note(at clock.Time, e *abi.TraceEvent) {
	r.events.add(maxEvents, noted{at: at, e: *e})
}

// Mark keeps a bookmark.
func (r *Recorder) Mark(at clock.Time, e *abi.TraceEvent, text string) {
	r.events.add(maxEvents, noted{at, *e, cut(text, abi.MarkBytes)})
}

// Reason keeps why something failed: reasons stay when events push out other events.
func (r *Recorder) Reason(at clock.Time, e *abi.TraceEvent, text string) {
	r.reasons.add(maxReasons, noted{at, *e, cut(text, maxText)})
}

// Warn keeps what the program was warned of.
func (r *Recorder) Warn(at clock.Time, e *abi.TraceEvent, text string) {
	r.warned.add(maxWarned, noted{at, *e, cut(text, maxText)})
}

// cut is the text, or a copy of its first bytes, so that the others are kept by nobody.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.Clone(text[:most])
}

// Failed reports whether a reason or a warning was kept.
func (r *Recorder) Failed() bool { return len(r.reasons.list)+len(r.warned.list) > 0 }

// Call keeps a request that was answered. Any goroutine may call it.
func (r *Recorder) Call(timeNs int64, e *abi.TraceEvent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls.add(maxCalls, Event{TimeNs: timeNs, TraceEvent: *e})
}

// Events copies all events, in no order: Sort is for who has the time. wall turns the
// worker's time into nanoseconds since 1970.
func (r *Recorder) Events(wall func(clock.Time) int64) []Event {
	all := make([]Event, 0, len(r.events.list)+len(r.reasons.list)+len(r.warned.list)+maxCalls)
	r.mu.Lock()
	all = append(all, r.calls.list...)
	r.mu.Unlock()
	for _, from := range []*ring[noted]{&r.events, &r.reasons, &r.warned} {
		for i := range from.list {
			all = append(all, from.list[i].event(wall))
		}
	}
	return all
}

func (n *noted) event(wall func(clock.Time) int64) Event { return Event{wall(n.at), n.e, n.text} }

// Sort puts events into their order, the oldest first.
func Sort(events []Event) {
	slices.SortStableFunc(events, func(a, b Event) int { return cmp.Compare(a.TimeNs, b.TimeNs) })
}

// Warned copies what the program was warned of, likewise.
func (r *Recorder) Warned(wall func(clock.Time) int64) (all []Event) {
	for i := range r.warned.list {
		all = append(all, r.warned.list[i].event(wall))
	}
	return all
}

// ring holds the last of what was added, in any order.
type ring[T any] struct {
	list []T
	next int // is overwritten next, once the ring is full
}

func (r *ring[T]) add(most int, v T) {
	if len(r.list) < most {
		r.list = append(r.list, v)
		return
	}
	r.list[r.next] = v
	r.next = (r.next + 1) % most
}
