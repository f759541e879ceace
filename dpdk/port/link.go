package port

import (
	"sync"
	"sync/atomic"
)

// LinkState is whether a port's link is up, for the drivers that implement Port:
// it counts the changes and tells the watchers.
type LinkState struct {
	up atomic.Bool

	mu       sync.Mutex // held while watchers are called, so that they see the changes in order
	watchers []func(up bool)
	counters Counters
	closed   bool
}

// Up is for Port.Link.
func (l *LinkState) Up() bool { return l.up.Load() }

// Watch is for Port.Watch.
func (l *LinkState) Watch(f func(up bool)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watchers = append(l.watchers, f)
}

// Set notes what the link is now. It may be called from any goroutine, also
// where nothing has changed.
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

// Close is for Port.Close: the link is down from now on, which nobody is told.
func (l *LinkState) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watchers = nil
	l.closed = true
	l.up.Store(false)
}

// Stats has LinkUps and LinkDowns, for Port.Stats.
func (l *LinkState) Stats() Stats { return l.counters.Snapshot() }
