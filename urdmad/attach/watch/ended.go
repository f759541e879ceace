package watch

import (
	"slices"

	"urdma/urdmad/attach/recorder"
	"urdma/urdmad/control/account"
)

// This file keeps the flight recorder events of clients that have ended after a failure, and
// answers requests for them.

// Limits of ended clients whose events are kept, in total and per user.
const (
	maxEnded     = 64
	maxUserEnded = 16
)

// ended has the events of a client that has ended.
type ended struct {
	owner  *account.Owner
	events []recorder.Event
}

// keep keeps the events of a client that ends.
func (c *client) keep() {
	if !c.recorder.Failed() {
		return
	}
	w, uid := c.w, c.x.Owner.UID
	w.ended = append(w.ended, &ended{c.x.Owner.Identity(), c.events()})
	own := 0
	for i := len(w.ended) - 1; i >= 0; i-- {
		if w.ended[i].owner.UID == uid {
			if own++; own > maxUserEnded {
				w.ended = slices.Delete(w.ended, i, i+1)
				return
			}
		}
	}
	if len(w.ended) > maxEnded {
		w.ended = slices.Delete(w.ended, 0, 1)
	}
}

// past returns the events from the recorders of all workers that match a capture. Each client's
// events take one turn; clients that the viewer may not see take none.
func (v *Watch) past(c *capture) (all []recorder.Event) {
	add := func(owner *account.Owner, events []recorder.Event) {
		for i := range events {
			e := events[i]
			e.PID = uint32(owner.PID)
			if c.wantsEvent(owner, &e.TraceEvent) {
				all = append(all, e)
			}
		}
	}
	for _, s := range v.s.Workers {
		var clients []*client
		var past []*ended
		s.Do(func() { clients, past = v.workers[s].seenBy(c.viewer) })
		for _, e := range past {
			add(e.owner, e.events)
		}
		for _, o := range clients {
			var events []recorder.Event
			s.Do(func() {
				if !o.x.Gone() {
					events = o.events()
				}
			})
			add(&o.x.Owner, events)
		}
	}
	recorder.Sort(all)
	return all
}

// seenBy returns the clients, and the ended clients, that a viewer may see; on the worker's
// thread.
func (w *worker) seenBy(viewer *account.Owner) (clients []*client, past []*ended) {
	for _, c := range w.clients {
		if viewer.Sees(&c.x.Owner) {
			clients = append(clients, c)
		}
	}
	for _, e := range w.ended {
		if viewer.Sees(e.owner) {
			past = append(past, e)
		}
	}
	return clients, past
}
