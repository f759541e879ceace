package injector

import (
	"time"

	"urdma/inject"
	"urdma/inspect"
	"urdma/urdmad/control"
	"urdma/urdmad/control/account"
	"urdma/urdmad/core/clock"
)

// This file is what snapshots show of a worker's rules; on its thread.

// Hits is how often something was injected at a worker, ever.
func (n *Injector) Hits(w *control.Worker) uint64 { return n.workers[w].hits }

// Rules is how many rules a worker has to show: the last that have ended, and those in force.
func (n *Injector) Rules(w *control.Worker) int {
	m := n.workers[w]
	return len(m.ended) + len(m.rules)
}

// Rule is one of a worker's rules, if the viewer may see it. Other workers may have it as well,
// with the same number, and count what they have seen of it. wall turns the engine's time into
// the wall's.
func (n *Injector) Rule(w *control.Worker, at int, viewer *account.Owner,
	wall func(clock.Time) time.Time) (v inspect.Injection, ok bool) {
	m := n.workers[w]
	list := m.ended
	if at >= len(list) {
		list, at = m.rules, at-len(list)
	}
	i := list[at]
	if !viewer.Sees(i.by) {
		return v, false
	}
	v = inspect.Injection{Number: i.number, Statement: i.text, PID: i.by.PID, Command: i.by.Name, UID: i.by.UID,
		Created: wall(i.since), Own: i.own, Seen: i.Seen, Hits: i.Hits, State: "active"}
	if i.stage != nil {
		v.Seen, v.Hits = i.stage.Seen, i.stage.Hits
	}
	switch {
	case i.over:
		v.State = "ended"
	case i.waits != nil:
		v.State = "waiting"
	case i.Point == inject.Post:
		v.State = "library"
	}
	return v, true
}
