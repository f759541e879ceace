package verbs

import (
	"context"
	"time"
)

// contextMutex is a mutex that a context ends the wait for: it is held while
// urdmad answers, which may take for ever.
type contextMutex chan struct{}

func newContextMutex() contextMutex { return make(contextMutex, 1) }

func (m contextMutex) lock(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case m <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (m contextMutex) unlock() { <-m }

// undoLimit is more than a urdmad that answers needs.
const undoLimit = 200 * time.Millisecond

// undo destroys what a failed call had made. Where it failed because ctx ended,
// urdmad may be silent: then undo does not wait for it for long, and what is
// made is destroyed when urdmad answers again.
func undo(ctx context.Context, destroy func()) {
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
