package control

import (
	"slices"
	"sync/atomic"
	"time"

	"urdma/urdmad/core/cm"
	"urdma/urdmad/core/connect"
	"urdma/urdmad/core/engine"
	"urdma/urdmad/core/events"
	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
)

// Worker is a poll loop, as the sessions of its clients see it.
type Worker struct {
	Engine  *engine.Engine
	CM      *cm.Manager
	Numbers *connect.Numbers
	// Wake wakes the worker.
	Wake func()
	// Borrow calls fn in place of the worker if the worker sleeps, and reports whether it did;
	// nil: never.
	Borrow func(fn func()) bool
	// WatchKick and UnwatchKick add and remove a kick socket of the worker.
	WatchKick, UnwatchKick func(fd int) error

	workerState
	clients atomic.Int32 // number of clients
}

// workerState is the state of a worker's clients; it belongs to the worker's thread.
type workerState struct {
	attached   []*Session              // sessions that have said HELLO
	byClient   map[*qp.Client]*Session // the same, by client
	linkEvents []linkEvent             // see LinkChanged
}

// attach adds a client that has said HELLO; on the engine's thread.
func (w *Worker) attach(x *Session) {
	if w.byClient == nil {
		w.byClient = map[*qp.Client]*Session{}
	}
	w.attached, w.byClient[&x.client.Client] = append(w.attached, x), x
	x.s.came(x)
}

// detach undoes attach for a client that ends. A target queue pair of the client's may still
// exist.
func (w *Worker) detach(x *Session) {
	w.attached = slices.DeleteFunc(w.attached, func(y *Session) bool { return y == x })
	delete(w.byClient, &x.client.Client)
}

// SessionOf returns the session of a client, or nil.
func (w *Worker) SessionOf(c *qp.Client) *Session { return w.byClient[c] }

// Do runs fn on the worker's thread and waits for it. If the worker sleeps, fn runs on this goroutine
// instead. fn must not block.
func (w *Worker) Do(fn func()) {
	if w.Borrow == nil || !w.Borrow(fn) {
		w.Turn(fn)
	}
}

// Turn runs fn in a turn of the worker and waits for it. It polls for a short time first, because
// an awake worker is done sooner than a thread can be woken.
func (w *Worker) Turn(fn func()) {
	var finished atomic.Bool
	done := make(chan struct{})
	w.Engine.Do(func() {
		defer close(done)
		fn()
		finished.Store(true)
	})
	w.Wake()
	for start := time.Now(); !finished.Load(); {
		if time.Since(start) > turnSpinTime {
			<-done
			return
		}
	}
}

// InTurns runs step on the worker's thread, once per turn until it returns false, and then done.
// It does not wait.
func (w *Worker) InTurns(step func() (more bool), done func()) {
	var turn func()
	turn = func() {
		more := false
		defer func() {
			if !more {
				done() // also after a fault in step
			}
		}()
		if more = step(); more {
			w.Engine.Do(turn) // in the next turn, after packets
		}
	}
	w.Engine.Do(turn)
	w.Wake()
}

// Turns is InTurns, but waits for the last step.
func (w *Worker) Turns(step func() (more bool)) {
	done := make(chan struct{})
	w.InTurns(step, func() { close(done) })
	<-done
}

// turnSpinTime is how long Turn polls before it sleeps.
const turnSpinTime = 20 * time.Microsecond

// Clients returns the clients that have said HELLO; on the worker's thread.
func (w *Worker) Clients() []*Session { return w.attached }

// linkEvent is an event still to be sent to a program.
type linkEvent struct {
	to    *events.Socket
	event abi.AsyncEvent
}
