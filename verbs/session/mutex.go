package session

import "context"

// Mutex is a mutex that a context ends the wait for: it is held while
// urdmad answers, which may take for ever.
type Mutex chan struct{}

// NewMutex returns one that nobody holds.
func NewMutex() Mutex { return make(Mutex, 1) }

// Lock waits for the mutex, or for the end of ctx, which it returns.
func (m Mutex) Lock(ctx context.Context) error {
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

// Unlock lets the next one have it.
func (m Mutex) Unlock() { <-m }
