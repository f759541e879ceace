package session

import (
	"context"
	"time"
)

// undoLimit is more than a urdmad that answers needs.
const undoLimit = 200 * time.Millisecond

// Undo destroys what a failed call had made. Where it failed because ctx ended,
// urdmad may be silent: then Undo does not wait for it for long, and what is
// made is destroyed when urdmad answers again.
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
