package engine_test

import (
	"testing"
	"time"

	"urdma/urdmad/engine/enginetest"
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
