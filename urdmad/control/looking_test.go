package control_test

import (
	"sync/atomic"
	"testing"
	"time"

	"urdma/inspect"
	"urdma/urdmad/control"
)

// TestOneLooksAtATime: a snapshot may be a thousand times as long as its request, so that a
// user gets one after the other, however many ask at once.
func TestOneLooksAtATime(t *testing.T) {
	var now, most atomic.Int32
	first, on := make(chan struct{}, 1), make(chan struct{})
	r := start(t, func(s *control.Server) {
		s.Responder = func() *inspect.Responder {
			most.Store(max(most.Load(), now.Add(1)))
			defer now.Add(-1)
			select {
			case first <- struct{}{}:
			default:
			}
			<-on
			return nil
		}
	})
	const looking = 8
	ended := make(chan error, looking)
	for range looking {
		go func() {
			_, err := fetch(r.socket)
			ended <- err
		}()
	}
	<-first
	time.Sleep(50 * time.Millisecond) // the others would come in
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
