package control

import (
	"time"

	"urdma/urdmad/attach/recorder"
	"urdma/urdmad/control/account"
	"urdma/urdmad/core/clock"
)

// This file is what a snapshot has of features that still stand in this package; all of it runs on
// the worker's thread. It goes with them.

// Warned is how many pitfalls clients of the worker were warned of.
func (w *Worker) Warned() uint64 { return w.warned }

// PastWarnings calls fn with the events of each client that is gone and that the viewer may see.
func (w *Worker) PastWarnings(viewer *account.Owner, fn func(owner *account.Owner, events []recorder.Event)) {
	for _, e := range w.ended {
		if viewer.Sees(e.owner) {
			fn(e.owner, e.events)
		}
	}
}

// wallClock turns the engine's time into the wall's.
type wallClock struct {
	wall time.Time
	at   clock.Time
}

// nanoseconds since 1970.
func (c wallClock) nanoseconds(t clock.Time) int64 {
	return c.wall.Add(time.Duration(t - c.at)).UnixNano()
}

// seenBy is the clients that a viewer may look at, and what is kept of others that are gone; on the
// engine's thread.
func (w *Worker) seenBy(viewer *account.Owner) (clients []*Session, past []*ended) {
	for _, x := range w.attached {
		if viewer.Sees(&x.Owner) {
			clients = append(clients, x)
		}
	}
	for _, e := range w.ended {
		if viewer.Sees(e.owner) {
			past = append(past, e)
		}
	}
	return clients, past
}
