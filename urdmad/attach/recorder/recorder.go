// Package recorder is the flight recorder: it always keeps a client's last events, so that they
// are available after a failure. Events have the form of a trace (abi.TraceEvent).
//
// It keeps rare events: requests, states of queue pairs, asynchronous and rdma_cm events, failed
// completions, resent segments, waits for receives, bookmarks and reasons. Posts and completions
// are not copied, because they stay in the client's rings until they are overwritten. Packets are
// visible to captures only.
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

// Limits of one client's recorder: 80 KiB in all; a client with few events uses less.
const (
	maxEvents  = 128
	maxCalls   = 128
	maxReasons = 16
	maxWarned  = 32
	maxText    = 1000 // longest reason or warning, in bytes
)

// Event is one event in a trace's form.
type Event struct {
	TimeNs int64 // since 1970
	abi.TraceEvent
	Text string // text of a reason or a bookmark
}

// noted is an event with the worker's time.
type noted struct {
	at   clock.Time
	e    abi.TraceEvent
	text string
}

// Recorder has the events of one client. The zero value is empty. Its methods run on the worker's
// thread, unless their comments say otherwise.
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

// Reason keeps the reason for a failure. Reasons are not pushed out by other events.
func (r *Recorder) Reason(at clock.Time, e *abi.TraceEvent, text string) {
	r.reasons.add(maxReasons, noted{at, *e, cut(text, maxText)})
}

// Warn keeps a warning that the program got.
func (r *Recorder) Warn(at clock.Time, e *abi.TraceEvent, text string) {
	r.warned.add(maxWarned, noted{at, *e, cut(text, maxText)})
}

// cut returns text, or a copy of its first bytes so that the rest can be freed.
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

// Events copies all events, unsorted; the caller can sort them with Sort elsewhere. wall converts
// the worker's time to nanoseconds since 1970.
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

// Sort sorts events, oldest first.
func Sort(events []Event) {
	slices.SortStableFunc(events, func(a, b Event) int { return cmp.Compare(a.TimeNs, b.TimeNs) })
}

// Warned copies the warnings, unsorted.
func (r *Recorder) Warned(wall func(clock.Time) int64) (all []Event) {
	for i := range r.warned.list {
		all = append(all, r.warned.list[i].event(wall))
	}
	return all
}

// ring keeps the last elements added, unsorted.
type ring[T any] struct {
	list []T
	next int // index to overwrite next, once the ring is full
}

func (r *ring[T]) add(most int, v T) {
	if len(r.list) < most {
		r.list = append(r.list, v)
		return
	}
	r.list[r.next] = v
	r.next = (r.next + 1) % most
}
