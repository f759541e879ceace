package engine_test

import (
	"testing"
	"time"

	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/engine/enginetest"
	"urdma/verbs/abi"
)

// TestVisitEndsWait: what somebody completes in the place of a worker that sleeps is as
// good as what a turn completes: a client that waits is woken.
func TestVisitEndsWait(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 53})
	a, _ := w.Pair(false, nil)
	idle := w.A.NewClient()
	a.PostRecv(7)
	w.Pass(10 * time.Millisecond)
	a.Client.Bells.Announce(true)
	idle.Bells.Announce(true)
	w.A.Engine.Visit(w.Now(), func() {})
	if !a.Client.Bells.Announced() {
		t.Fatal("woken with nothing completed")
	}
	w.A.Engine.Visit(w.Now(), func() {
		if err := a.Q.Modify(abi.QPMaskState, &abi.QPAttr{QPState: abi.QPSErr}); err != nil {
			t.Error(err)
		}
	})
	if got := a.Recv.Poll(); len(got) != 1 || got[0].WRID != 7 || got[0].Status != abi.StatusWRFlushErr {
		t.Fatalf("completed %+v", got)
	}
	if a.Client.Bells.Announced() {
		t.Error("completed, and still waiting")
	}
	if !idle.Bells.Announced() {
		t.Error("woken with nothing of its own completed")
	}
}

// TestVisitDisconnects: a program that posts, wakes the worker and disconnects at once
// may be heard in the worker's place, before its posts are seen: they go out.
func TestVisitDisconnects(t *testing.T) {
	for _, local := range []bool{false, true} {
		w := enginetest.New(t, enginetest.Options{Seed: 54})
		other := w.B
		if local {
			other = w.A
		}
		a, b := w.A.NewClient().NewQP(nil), other.NewClient().NewQP(nil)
		id, _ := enginetest.Join(a, b, 1)
		mine, theirs := a.Client.Register(64, enginetest.ReadWrite), b.Client.Register(64, enginetest.ReadWrite)
		for i := range 4 {
			b.PostRecv(uint64(i), theirs.SGE(0, 10))
		}
		w.Pass(10 * time.Millisecond)
		for i := range 4 {
			a.Post(enginetest.Send(uint64(i)), mine.SGE(0, 10))
		}
		w.A.Engine.Visit(w.Now(), func() {
			if err := w.A.CM.Disconnect(id); err != nil {
				t.Error(err)
			}
		})
		for i, got := range b.Recv.Completions(4) {
			if got.Status != abi.StatusSuccess {
				t.Errorf("local %v: message %d has status %d", local, i, got.Status)
			}
		}
	}
}

// TestDisconnectSlowly: what was posted before a disconnect goes out also where it is
// more than a turn takes, and turns take long.
func TestDisconnectSlowly(t *testing.T) {
	const n = 1000
	for _, local := range []bool{false, true} {
		w := enginetest.New(t, enginetest.Options{Seed: 54})
		other := w.B
		if local {
			other = w.A
		}
		most := enginetest.DefaultCap
		most.MaxSendWR, most.MaxRecvWR = 1024, 1024
		a, b := w.A.NewClient().NewQP(&most), other.NewClient().NewQP(&most)
		id, _ := enginetest.Join(a, b, 1)
		mine, theirs := a.Client.Register(64, enginetest.ReadWrite), b.Client.Register(64, enginetest.ReadWrite)
		for i := range uint64(n) {
			b.PostRecv(i, theirs.SGE(0, 10))
		}
		w.Pass(10 * time.Millisecond)
		for i := range uint64(n) {
			a.Post(enginetest.Send(i), mine.SGE(0, 10))
		}
		w.A.Do(func() {
			if err := w.A.CM.Disconnect(id); err != nil {
				t.Error(err)
			}
		})
		for range 20 {
			w.Net.Advance(int64(w.Now() + 2*clock.Millisecond))
			w.A.Engine.Turn(w.Now())
			w.B.Engine.Turn(w.Now())
		}
		for i, got := range b.Recv.Completions(n) {
			if got.Status != abi.StatusSuccess {
				t.Fatalf("local %v: message %d has status %d", local, i, got.Status)
			}
		}
	}
}
