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
	"urdma/urdmad/core/mem"
	"urdma/urdmad/core/qp"
)

// This file is the rules of urdma inject at work. script.go makes them, answer.go asks them.

const (
	maxRules     = 1024 // rules and waits of all users, at a worker
	maxUserRules = 128  // of one that is no admin
	keptRules    = 64   // that have ended and are still shown
)

// worker is what goes wrong at a worker; its thread's.
type worker struct {
	*control.Worker
	n        *Injector
	clients  []*client
	of       map[*qp.Client]*client
	rules    []*rule               // in the order in which they were made
	ended    []*rule               // the last of them that have
	wires    map[int]*impair.Queue // by device; those that there are
	cut      map[cut]*impair.Stage // links that are down on purpose
	hits     uint64                // ever
	rejected netip.AddrPort        // whose connection request was rejected last
}

// rule is a rule at work, or a wait for a time, which no client meets.
type rule struct {
	*inject.Draw
	number uint32
	text   string
	by     *account.Owner // who asked for it; a copy, for the session may be gone
	own    bool           // it is for one client alone
	client *client        // that one, until the rule ends; nil: all that by sees
	waits  *wait          // is over once it hits, or its time has come; nil: it is a rule
	since  clock.Time
	expiry *clock.Timer
	over   bool
	stage  *impair.Stage // at OnWire
	dev    int           // that it is on
}

// concerns reports whether a rule is for a client, at whatever the client does.
func (i *rule) concerns(c *client) bool {
	switch {
	case i.Point == 0, i.Point == inject.OnWire, i.PID != 0 && i.PID != c.x.Owner.PID:
		return false
	case i.own:
		return i.client == c
	}
	return i.by.Sees(&c.x.Owner)
}

// client is the rules that concern one client: what others have asked for costs it nothing.
// It is the worker's thread's, if nothing else is said.
type client struct {
	x     *control.Session
	qp    *qp.Client
	w     *worker
	gone  bool
	at    [inject.Strictly + 1][]*rule // by point, in the order in which they were made
	calls atomic.Bool                  // some rule is for requests; any goroutine may ask

	limits    *inject.Strict // of urdma exec --strict; nil: not wanted; the session's goroutine's
	freedQPN  uint32         // that was given back last, 0: none
	freedSTag mem.STag       // likewise
	writes    map[*qp.QP]*write
	late
}

// add has the rules that there are count for a client that has come.
func (w *worker) add(c *client) {
	c.w, c.writes = w, map[*qp.QP]*write{}
	c.late = late{channels: map[*control.EventChannel]*lateEvents{}, queues: map[*qp.CQ]*clock.Timer{}}
	w.clients, w.of[c.qp] = append(w.clients, c), c
	w.n.clients.Store(c.x, c)
	for _, i := range w.rules {
		c.add(i)
	}
}

// remove ends what a client's end ends: its own rules, and those for its process.
func (w *worker) remove(c *client) {
	c.gone = true
	w.clients = slices.DeleteFunc(w.clients, func(d *client) bool { return d == c })
	delete(w.of, c.qp)
	w.n.clients.Delete(c.x)
	last := !slices.ContainsFunc(w.clients, func(d *client) bool { return d.x.Owner.PID == c.x.Owner.PID })
	w.end(func(i *rule) bool { return i.own && i.client == c || last && i.PID != 0 && i.PID == c.x.Owner.PID },
		"the process has ended")
	c.forgetAll()
	c.qp.Interceptor = nil
}

// add has a rule count, if it concerns the client.
func (c *client) add(i *rule) {
	if !i.over && i.concerns(c) {
		c.at[i.Point] = append(c.at[i.Point], i)
		c.changed()
	}
}

// dropEnded has rules that are over count no more.
func (c *client) dropEnded() {
	for p := range c.at {
		c.at[p] = slices.DeleteFunc(c.at[p], func(i *rule) bool { return i.over })
	}
	c.changed()
}

// changed has the client asked about, if a rule is for what it does.
func (c *client) changed() {
	c.calls.Store(len(c.at[inject.Call]) > 0)
	c.qp.Interceptor = nil
	for _, p := range []inject.Point{inject.Send, inject.Receive, inject.Respond, inject.Notify, inject.Strictly} {
		if len(c.at[p]) > 0 {
			c.qp.Interceptor = c
		}
	}
	if c.qp.Interceptor == nil {
		clear(c.writes) // whose end it is not told
	}
}

// make has a rule count from now on.
func (w *worker) make(i *rule) {
	w.rules = append(w.rules, i)
	for _, c := range w.clients {
		c.add(i)
	}
}

// end ends some rules, and reports whether there were any.
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

// ends undoes what a rule, which counts no more, has set up, and says that it is over.
func (w *worker) ends(i *rule, why string) {
	if i.stage != nil {
		i.Seen, i.Hits = i.stage.Seen, i.stage.Hits
		w.hits += i.Hits
		w.repair(i.dev, i.stage)
	}
	if i.expiry != nil {
		w.Engine.Clock.Set(i.expiry, clock.Never)
	}
	i.waits, i.client = nil, nil // what is only shown keeps neither
	s := w.n.server
	log := s.Log
	if len(s.Workers) > 1 { // each has counted for itself
		log = log.With("worker", slices.Index(s.Workers, w.Worker))
	}
	log.Info("inject: ends", "number", i.number, "statement", i.text, "seen", i.Seen, "hits", i.Hits, "why", why)
}

// endOne ends a rule, if it has not ended yet.
func (w *worker) endOne(i *rule, why string) {
	w.end(func(j *rule) bool { return j == i }, why)
}
