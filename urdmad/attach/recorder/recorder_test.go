package recorder

import (
	"strings"
	"testing"
	"unsafe"

	"urdma/urdmad/core/clock"
	"urdma/verbs/abi"
)

func wall(t clock.Time) int64 { return int64(t) }

// TestBounded: the newest events stay, in their order, and other events don't displace a reason.
func TestBounded(t *testing.T) {
	var r Recorder
	r.Reason(1, &abi.TraceEvent{Code: 7}, strings.Repeat("x", 2*maxText))
	for i := range 10 * maxEvents {
		at := 2 * i
		r.Note(clock.Time(at+2), &abi.TraceEvent{WRID: uint64(at)})
		r.Call(int64(at+3), &abi.TraceEvent{WRID: uint64(at + 1)})
	}
	got := r.Events(wall)
	Sort(got)
	if len(got) != maxEvents+maxCalls+1 || got[0].Code != 7 || len(got[0].Text) != maxText {
		t.Fatalf("%d events, the first %+v", len(got), got[0])
	}
	for i, e := range got[1:] {
		if want := uint64(20*maxEvents - maxEvents - maxCalls + i); e.WRID != want {
			t.Fatalf("event %d is %d, expected %d", i, e.WRID, want)
		}
	}
	if !r.Failed() || new(Recorder).Failed() {
		t.Error("Failed does not tell of reasons alone")
	}
}

// TestWarned: Warned returns only warnings, the last ones, in their order.
func TestWarned(t *testing.T) {
	var r Recorder
	r.Reason(1, &abi.TraceEvent{}, "")
	for i := range maxWarned + 3 {
		r.Warn(clock.Time(i), &abi.TraceEvent{WRID: uint64(i)}, "")
	}
	got := r.Warned(wall)
	Sort(got)
	if len(got) != maxWarned {
		t.Fatalf("%d warnings", len(got))
	}
	for i, e := range got {
		if e.WRID != uint64(i+3) || e.TimeNs != int64(i+3) {
			t.Errorf("warning %d: %+v", i, e)
		}
	}
}

// TestNoteAllocatesNothing: once the ring is full, recording an event allocates nothing.
func TestNoteAllocatesNothing(t *testing.T) {
	var r Recorder
	e := abi.TraceEvent{Kind: abi.TraceResent}
	for range maxEvents {
		r.Note(1, &e)
	}
	if n := testing.AllocsPerRun(100, func() { r.Note(1, &e) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestMemory: a full recorder takes no more memory than docs/debugging.md says, for any events.
func TestMemory(t *testing.T) {
	const most = 80 << 10
	var r Recorder
	e := abi.TraceEvent{}
	for i := range 10_000 {
		text := strings.Repeat("x", i)
		r.Note(1, &e)
		r.Mark(1, &e, text)
		r.Reason(1, &e, text)
		r.Warn(1, &e, text)
		r.Call(1, &e)
	}
	bytes := unsafe.Sizeof(r) + uintptr(cap(r.calls.list))*unsafe.Sizeof(Event{})
	for _, from := range []*ring[noted]{&r.events, &r.reasons, &r.warned} {
		bytes += uintptr(cap(from.list)) * unsafe.Sizeof(noted{})
		for i := range from.list {
			bytes += uintptr(len(from.list[i].text))
		}
	}
	if bytes > most {
		t.Errorf("%d bytes, expected %d at most", bytes, most)
	}
}
