package watch

import (
	"log/slog"
	"testing"

	"urdma/urdmad/control"
	"urdma/urdmad/control/account"
	"urdma/urdmad/core/engine"
	"urdma/verbs/abi"
)

// endedClient returns an ended client of a user; failed: with a reason.
func endedClient(w *worker, uid, pid int, failed bool) *client {
	_, c := watched(sessionOf(uid, pid), w)
	c.recorder.Note(1, &abi.TraceEvent{Kind: abi.TraceState})
	if failed {
		c.recorder.Reason(1, &abi.TraceEvent{Kind: abi.TraceReason, Code: 0x0102}, "text")
	}
	return c
}

// TestEndedClients: failed clients are kept, up to limits per user and in total, and nobody sees another user's.
func TestEndedClients(t *testing.T) {
	s := &control.Server{Workers: []*control.Worker{{Engine: engine.New(engine.Config{})}},
		Log: slog.New(slog.DiscardHandler)}
	v := Attach(s, nil)
	w := v.workers[s.Workers[0]]
	for pid := range 100 {
		endedClient(w, 1000, pid, true).keep()
		endedClient(w, 1001, pid, pid < 3).keep()
	}
	own := map[int]int{}
	for _, e := range w.ended {
		own[e.owner.UID]++
		if len(e.events) != 2 || e.owner.UID == 1000 && e.owner.PID < 100-maxUserEnded {
			t.Errorf("kept of process %d of user %d: %+v", e.owner.PID, e.owner.UID, e.events)
		}
	}
	if own[1000] != maxUserEnded || own[1001] != 3 {
		t.Errorf("%v, expected %d and 3", own, maxUserEnded)
	}
	for uid := range 100 {
		endedClient(w, uid, 1, true).keep()
	}
	if len(w.ended) != maxEnded {
		t.Errorf("%d are kept, expected %d", len(w.ended), maxEnded)
	}
	c := &capture{w: w, viewer: &account.Owner{UID: 50, Realm: ""}, filter: abi.CaptureRequest{Flags: abi.CapturePast}}
	turns := 0
	w.Borrow = func(fn func()) bool { turns++; fn(); return true }
	if events := v.past(c); len(events) != 2 || events[0].PID != 1 || turns != 1 {
		t.Errorf("user 50 sees in %d turns %+v, expected two events of a process in one", turns, events)
	}
	for _, uid := range []int{50, 51, 50, 51, 51} {
		one := endedClient(w, uid, 2, true)
		one.x.Owner.Realm, c.viewer.Realm = "here", "here"
		w.clients = append(w.clients, one)
	}
	if turns = 0; len(v.past(c)) != 4 || turns != 3 {
		t.Errorf("user 50 sees %d events of two clients in %d turns, expected 4 in 3", len(v.past(c)), turns)
	}
}
