package injector

import (
	"net/netip"
	"slices"
	"sync/atomic"

	"urdma/inject"
	"urdma/urdmad/attach/impair"
	"urdma/urdmad/control"
	"urdma/urdmad/control/account"
	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/events"
	"urdma/urdmad/core/mem"
	"urdma/urdmad/core/qp"
)

// This file stores the rules of urdma inject. script.go makes them, answer.go applies them.

const (
	maxRules     = 1024 // largest number of rules and waits at a worker
	maxUserRules = 128  // the same for one user who is not an admin
	keptRules    = 64   // ended rules that are still shown
)

// worker is the state of fault injection at a worker; it belongs to that worker's thread.
type worker struct {
	*control.Worker
	n        *Injector
	clients  []*client
	of       map[*qp.Client]*client
	rules    []*rule               // active rules, oldest first
	ended    []*rule               // the newest ended rules
	wires    map[int]*impair.Queue // impaired queues, by device
	cut      map[cut]*impair.Stage // links taken down
	hits     uint64                // number of hits so far
	rejected netip.AddrPort        // peer of the connection request rejected last
}

// rule is an active rule, or a wait for a time, which matches no event.
type rule struct {
	*inject.Draw
	number uint32
	text   string
	by     *account.Owner // owner of the rule; a copy, because the session may be gone
	own    bool           // the rule is for one client only
	client *client        // that client, until the rule ends; nil: all clients that by may see
	waits  *wait          // the wait that this stands for; nil: a rule
	since  clock.Time
	expiry *clock.Timer
	over   bool
	stage  *impair.Stage // for OnWire
	dev    int           // device of stage
}

// concerns reports whether a rule can apply to some event of a client.
func (i *rule) concerns(c *client) bool {
	switch {
	case i.Point == 0, i.Point == inject.OnWire, i.PID != 0 && i.PID != c.x.Owner.PID:
		return false
	case i.own:
		return i.client == c
	}
	return i.by.Sees(&c.x.Owner)
}

// hits returns the number of events that the rule has hit.
func (i *rule) hits() uint64 {
	if i.stage != nil {
		return i.stage.Hits
	}
	return i.Hits
}

// client has the rules that concern one client, so that rules for other clients cost it nothing.
// It belongs to the worker's thread, except where noted.
type client struct {
	x     *control.Session
	qp    *qp.Client
	w     *worker
	gone  bool
	at    [inject.Strictly + 1][]*rule // by point, oldest first
	calls atomic.Bool                  // some rule is for requests; for any goroutine

	limits    *inject.Strict // limits of urdma exec --strict; nil: off; the session's goroutine only
	freedQPN  uint32         // number of the queue pair removed last; 0: none
	freedSTag mem.STag       // STag freed last; 0: none
	writes    map[*qp.QP]*write
	late
}

// add applies the existing rules to a new client.
func (w *worker) add(c *client) {
	c.w, c.writes = w, map[*qp.QP]*write{}
	c.late = late{channels: map[*events.Socket]*lateEvents{}, queues: map[*qp.CQ]*clock.Timer{}}
	w.clients, w.of[c.qp] = append(w.clients, c), c
	w.n.clients.Store(c.x, c)
	for _, i := range w.rules {
		c.add(i)
	}
}

// remove ends the rules that end with a client: its own, and those for its process and its queue pairs.
func (w *worker) remove(c *client) {
	c.gone = true
	w.clients = slices.DeleteFunc(w.clients, func(d *client) bool { return d == c })
	delete(w.of, c.qp)
	w.n.clients.Delete(c.x)
	last := !slices.ContainsFunc(w.clients, func(d *client) bool { return d.x.Owner.PID == c.x.Owner.PID })
	w.end(func(i *rule) bool {
		return i.own && i.client == c || last && i.PID != 0 && i.PID == c.x.Owner.PID || w.isOf(c, i.QPN)
	}, "the process has ended")
	c.forgetAll()
	c.qp.Interceptor = nil
}

// isOf reports whether a queue pair, which may be 0, belongs to a client.
func (w *worker) isOf(c *client, qpn uint32) bool {
	q := w.Engine.QPs.Pair(qpn)
	return q != nil && q.Client == c.qp
}

// add adds a rule if it concerns the client.
func (c *client) add(i *rule) {
	if !i.over && i.concerns(c) {
		c.at[i.Point] = append(c.at[i.Point], i)
		c.changed()
	}
}

// dropEnded removes rules that have ended.
func (c *client) dropEnded() {
	for p := range c.at {
		c.at[p] = slices.DeleteFunc(c.at[p], func(i *rule) bool { return i.over })
	}
	c.changed()
}

// changed installs or removes the client's Interceptor, as its rules require.
func (c *client) changed() {
	c.calls.Store(len(c.at[inject.Call]) > 0)
	c.qp.Interceptor = nil
	for _, p := range []inject.Point{inject.Send, inject.Receive, inject.Respond, inject.Notify, inject.Strictly} {
		if len(c.at[p]) > 0 {
			c.qp.Interceptor = c
		}
	}
	if c.qp.Interceptor == nil {
		clear(c.writes) // without the Interceptor, WriteEnds is not called
	}
}

// make activates a rule.
func (w *worker) make(i *rule) {
	w.rules = append(w.rules, i)
	for _, c := range w.clients {
		c.add(i)
	}
}

// end ends the rules for which which returns true, and reports whether there were any.
func (w *worker) end(which func(*rule) bool, why string) bool {
	var left, ended []*rule
	for _, i := range w.rules {
		if which(i) {
			i.over = true
			ended = append(ended, i)
		} else {
			left = append(left, i)
		}
	}
	if len(ended) == 0 {
		return false
	}
	w.rules = left
	for _, c := range w.clients {
		c.dropEnded()
	}
	for _, i := range ended {
		w.ends(i, why)
	}
	w.ended = append(w.ended, ended...)
	w.ended = slices.Clone(w.ended[max(0, len(w.ended)-keptRules):])
	return true
}

// ends undoes the effects of a rule that was removed, and logs its end.
func (w *worker) ends(i *rule, why string) {
	if i.stage != nil {
		i.Seen, i.Hits = i.stage.Seen, i.stage.Hits
		w.hits += i.Hits
		w.repair(i.dev, i.stage)
	}
	if i.expiry != nil {
		w.Engine.Clock.Set(i.expiry, clock.Never)
	}
	i.waits, i.client = nil, nil // an ended rule does not need them
	s := w.n.server
	log := s.Log
	if len(s.Workers) > 1 { // each worker has counted separately
		log = log.With("worker", slices.Index(s.Workers, w.Worker))
	}
	log.Info("inject: ends", "number", i.number, "statement", i.text, "seen", i.Seen, "hits", i.Hits, "why", why)
}

// endOne ends a rule, unless it has ended already. A client may ask for the hits of its own rule (inject.Hits), so
// that one only stops: it counts as a rule until the client clears it or ends.
func (w *worker) endOne(i *rule, why string) {
	if i.own && i.client != nil {
		i.over = true
		i.client.dropEnded()
		return
	}
	w.end(func(j *rule) bool { return j == i }, why)
}

// endThoseOf ends the rules for a queue pair that is destroyed, because another one may get its number.
func (w *worker) endThoseOf(qpn uint32) {
	for _, i := range slices.Clone(w.rules) {
		if i.QPN == qpn {
			w.endOne(i, "its queue pair was destroyed")
		}
	}
}
