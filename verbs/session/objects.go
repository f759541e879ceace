package session

import (
	"maps"
	"slices"
	"sync"
)

// Objects are what a program has of one kind, by their handles. The zero value has
// none; any goroutine may use it.
type Objects[V any] struct {
	mu  sync.Mutex
	all map[uint32]V
}

// Add notes an object.
func (o *Objects[V]) Add(handle uint32, v V) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.all == nil {
		o.all = map[uint32]V{}
	}
	o.all[handle] = v
}

// Remove forgets an object, and reports whether it was there.
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

// All are the objects there are.
func (o *Objects[V]) All() (all []V) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Collect(maps.Values(o.all))
}

// Drain are the objects there were: it forgets them.
func (o *Objects[V]) Drain() (all []V) {
	o.mu.Lock()
	defer o.mu.Unlock()
	all = slices.Collect(maps.Values(o.all))
	clear(o.all)
	return all
}
