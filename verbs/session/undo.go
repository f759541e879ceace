package session

import (
	"context"
	"time"
)

// undoLimit is longer than a running urdmad takes to answer.
const undoLimit = 200 * time.Millisecond

// Undo destroys the objects that a failed call has created. If the call failed because ctx ended, urdmad may
// be silent: then Undo waits only briefly, and the objects are destroyed when urdmad answers again.
func Undo(ctx context.Context, destroy func()) {
	if ctx.Err() == nil {
		destroy()
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		destroy()
	}()
	select {
	case <-done:
	case <-time.After(undoLimit):
	}
}
