// Package mailbox passes values from any goroutine to the worker's thread.
package mailbox

import (
	"sync"
	"sync/atomic"
)

// Box is a queue to which any goroutine may append and which one thread empties. The zero value is empty.
type Box[T any] struct {
	full atomic.Bool
	mu   sync.Mutex
	q    []T
}

// Put appends v. The caller must wake the thread that calls Take.
func (m *Box[T]) Put(v T) {
	m.mu.Lock()
	m.q = append(m.q, v)
	m.mu.Unlock()
	m.full.Store(true)
}

// Full reports whether Take would return any value; it costs one atomic load.
func (m *Box[T]) Full() bool { return m.full.Load() }

// Take returns all values put so far. If there are none, it costs one atomic load and takes no lock.
func (m *Box[T]) Take() []T {
	if !m.full.Load() {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.full.Store(false)
	q := m.q
	m.q = nil
	return q
}
