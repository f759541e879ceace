package snapshot_test

import (
	"sync/atomic"
	"testing"
	"time"

	"urdma/urdmad/attach/snapshot"
	"urdma/urdmad/control/controltest"
)

// TestOneLooksAtATime: a user gets one snapshot after the other, since a snapshot may be a thousand times as long as
// its request.
func TestOneLooksAtATime(t *testing.T) {
	var now, most atomic.Int32
	first, on := make(chan struct{}, 1), make(chan struct{})
	slow := func(*snapshot.Gathering) error {
		most.Store(max(most.Load(), now.Add(1)))
		defer now.Add(-1)
		select {
		case first <- struct{}{}:
		default:
		}
		<-on
		return nil
	}
	r := controltest.Start(t, func(r *controltest.Running) {
		snapshot.Attach(r.Server, snapshot.Config{Parts: []snapshot.Part{slow}})
	})
	const looking = 8
	ended := make(chan error, looking)
	for range looking {
		go func() {
			_, err := fetch(r.Socket)
			ended <- err
		}()
	}
	<-first
	time.Sleep(50 * time.Millisecond) // time for the others to begin
	close(on)
	for range looking {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if n := most.Load(); n != 1 {
		t.Errorf("%d snapshots were made at once, expected 1", n)
	}
}
