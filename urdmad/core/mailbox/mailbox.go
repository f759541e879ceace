// Package mailbox hands values from any goroutine to the worker's thread.
package mailbox

import (
	"sync"
	"sync/atomic"
)

// Box is a queue that any goroutine may put into and one thread empties. The
// zero value is empty.
type Box[T any] struct {
	full atomic.Bool
	mu   sync.Mutex
	q    []T
}

// Put appends v. The caller wakes the thread that takes.
func (m *Box[T]) Put(v T) {
	m.mu.Lock()
	m.q = append(m.q, v)
	m.mu.Unlock()
	m.full.Store(true)
}

// Full reports whether Take would return anything; one load.
func (m *Box[T]) Full() bool { return m.full.Load() }

// Take returns all values put so far; a load and no lock when there are none.
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
