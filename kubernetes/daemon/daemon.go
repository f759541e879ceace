// Package daemon observes a urdmad: whether it answers, and which ports it has. It knows nothing of Kubernetes.
package daemon

import (
	"context"
	"sync"
	"time"

	"urdma/inspect"
)

// interval is the time between two questions to urdmad.
const interval = time.Second

// State is what urdmad said last.
type State struct {
	Err   error // why urdmad did not answer; nil if it did
	Ports []inspect.Port
}

// Healthy reports whether urdmad answered.
func (s State) Healthy() bool { return s.Err == nil }

// Observer asks one urdmad again and again. Its methods may be called from any goroutine.
type Observer struct {
	socket  string
	mu      sync.Mutex
	state   State         // guarded by mu
	changed chan struct{} // guarded by mu; closed when Healthy changes
}

// New returns an observer of the urdmad with that control socket. Until Run has asked it, it does not answer.
func New(socket string) *Observer {
	return &Observer{socket: socket, state: State{Err: inspect.ErrNotRunning}, changed: make(chan struct{})}
}

// State returns the last state, and a channel that is closed when urdmad begins or ceases to answer after that.
func (o *Observer) State() (State, <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.state, o.changed
}

// Run asks urdmad until ctx ends. report is called when urdmad begins or ceases to answer, and after the first
// question.
func (o *Observer) Run(ctx context.Context, report func(State)) {
	var source *inspect.Source
	defer func() {
		if source != nil {
			source.Close()
		}
	}()
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for first := true; ; first = false {
		state := State{}
		if source == nil {
			source, state.Err = inspect.Open(o.socket)
		}
		if source != nil {
			var s *inspect.Snapshot
			if s, state.Err = source.Fetch(); state.Err == nil {
				state.Ports = s.Ports
			} else {
				source.Close()
				source = nil // the next question goes to the urdmad that then has the socket
			}
		}
		if o.set(state) || first {
			report(state)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// set reports whether urdmad has begun or ceased to answer.
func (o *Observer) set(s State) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	changes := s.Healthy() != o.state.Healthy()
	o.state = s
	if changes {
		close(o.changed)
		o.changed = make(chan struct{})
	}
	return changes
}
