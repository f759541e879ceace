package port

import (
	"sync"
	"sync/atomic"
)

// LinkState is the state of a port's link, for drivers that implement Port: it counts changes and calls the
// watchers.
type LinkState struct {
	up atomic.Bool

	mu       sync.Mutex // held while watchers are called, so that they see changes in order
	watchers []func(up bool)
	counters Counters
	closed   bool
}

// Up implements Port.Link.
func (l *LinkState) Up() bool { return l.up.Load() }

// Watch implements Port.Watch.
func (l *LinkState) Watch(f func(up bool)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watchers = append(l.watchers, f)
}

// Set sets the state of the link. It may be called from any goroutine, also if nothing has changed.
func (l *LinkState) Set(up bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.up.Load() == up {
		return
	}
	l.up.Store(up)
	if up {
		l.counters.LinkUps.Add(1)
	} else {
		l.counters.LinkDowns.Add(1)
	}
	for _, f := range l.watchers {
		f(up)
	}
}

// Close is called by Port.Close: the link is down from now on; watchers are not called.
func (l *LinkState) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watchers = nil
	l.closed = true
	l.up.Store(false)
}

// Stats returns LinkUps and LinkDowns, for Port.Stats.
func (l *LinkState) Stats() Stats { return l.counters.Snapshot() }
