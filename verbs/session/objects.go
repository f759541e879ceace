package session

import (
	"maps"
	"slices"
	"sync"
)

// Objects is the table of a program's objects of one kind, by handle. The zero value is empty; any goroutine
// may use it.
type Objects[V any] struct {
	mu  sync.Mutex
	all map[uint32]V
}

// Add adds an object.
func (o *Objects[V]) Add(handle uint32, v V) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.all == nil {
		o.all = map[uint32]V{}
	}
	o.all[handle] = v
}

// Remove removes an object, and reports whether it was there.
func (o *Objects[V]) Remove(handle uint32) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, ok := o.all[handle]
	delete(o.all, handle)
	return ok
}

// Get finds an object.
func (o *Objects[V]) Get(handle uint32) (v V, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	v, ok = o.all[handle]
	return v, ok
}

// All returns all objects.
func (o *Objects[V]) All() (all []V) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Collect(maps.Values(o.all))
}

// Drain removes all objects and returns them.
func (o *Objects[V]) Drain() (all []V) {
	o.mu.Lock()
	defer o.mu.Unlock()
	all = slices.Collect(maps.Values(o.all))
	clear(o.all)
	return all
}
