package session

import "context"

// Mutex is a mutex whose Lock ends with a context. It is held while urdmad answers, which may take for ever.
type Mutex chan struct{}

// NewMutex returns an unlocked mutex.
func NewMutex() Mutex { return make(Mutex, 1) }

// Lock waits for the mutex; if ctx ends first it returns ctx's error.
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

// Unlock unlocks the mutex.
func (m Mutex) Unlock() { <-m }
