package control

import (
	"net/netip"
	"slices"
	"sync/atomic"

	"urdma/inject"
	"urdma/urdmad/attach/impair"
	"urdma/urdmad/control/account"
	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/qp"
)

// This file is the rules of urdma inject at work. What makes them stands in inject_script.go, what is asked
// about them in faults.go.

const (
	maxInjections   = 1024 // rules and waits of all users, at a worker
	maxUserInjected = 128  // of one that is no admin
	keptInjections  = 64   // that have ended and are still shown
)

// injections are what goes wrong on purpose at a worker; its thread's.
type injections struct {
	s      *Server
	w      *Worker
	rules  []*injection          // in the order in which they were made
	ended  []*injection          // the last of them that have
	wires  map[int]*impair.Queue // by device; those that there are
	cut    map[cut]*impair.Stage // links that are down on purpose
	hits   uint64                // ever
	cmPeer netip.AddrPort        // whose connection request was refused last
}

// injections are the worker's; on its thread.
func (w *Worker) injections(s *Server) *injections {
	w.injected.s, w.injected.w = s, w
	return &w.injected
}

// injection is a rule at work, or a wait for a time, which no client meets.
type injection struct {
	*inject.Draw
	number uint32
	text   string
	by     *account.Owner // who asked for it; a copy, for the session may be gone
	own    bool           // it is for one client alone
	client *Session       // that one, until the rule ends; nil: all that by sees
	waits  *wait          // is over once it hits, or its time has come; nil: it is a rule
	since  clock.Time
	expiry *clock.Timer
	over   bool
	stage  *impair.Stage // at OnWire
	dev    int           // that it is on
}

// concerns reports whether a rule is for a client, at whatever the client does.
func (i *injection) concerns(x *Session) bool {
	switch {
	case i.Point == 0, i.Point == inject.OnWire, i.PID != 0 && i.PID != x.Owner.PID:
		return false
	case i.own:
		return i.client == x
	}
	return i.by.Sees(&x.Owner)
}

// faults are the rules that concern one client: what others have asked for costs it nothing.
// All but calls is the engine's thread's.
type faults struct {
	x     *Session
	at    [inject.Strictly + 1][]*injection // by point, in the order in which they were made
	calls atomic.Bool                       // some rule is for requests
}

// concern has the rules that there are count for a client that has come.
func (n *injections) concern(x *Session) {
	for _, i := range n.rules {
		x.faults.add(i)
	}
}

// add has a rule count, if it concerns the client.
func (f *faults) add(i *injection) {
	if !i.over && i.concerns(f.x) {
		f.at[i.Point] = append(f.at[i.Point], i)
		f.changed()
	}
}

// dropEnded has rules that are over count no more.
func (f *faults) dropEnded() {
	for p := range f.at {
		f.at[p] = slices.DeleteFunc(f.at[p], func(i *injection) bool { return i.over })
	}
	f.changed()
}

// changed has the client asked about, if a rule is for what it does.
func (f *faults) changed() {
	f.calls.Store(len(f.at[inject.Call]) > 0)
	var ask qp.Faults
	for _, p := range []inject.Point{inject.Send, inject.Receive, inject.Respond, inject.Notify, inject.Strictly} {
		if len(f.at[p]) > 0 {
			ask = f
		}
	}
	f.x.client.Faults = ask
}

// make has a rule count from now on.
func (n *injections) make(i *injection) {
	n.rules = append(n.rules, i)
	for _, x := range n.w.attached {
		x.faults.add(i)
	}
}

// end ends some rules, and reports whether there were any.
func (n *injections) end(which func(*injection) bool, why string) bool {
	var left, ended []*injection
	for _, i := range n.rules {
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
	n.rules = left
	for _, x := range n.w.attached {
		x.faults.dropEnded()
	}
	for _, i := range ended {
		n.ends(i, why)
	}
	n.ended = append(n.ended, ended...)
	n.ended = slices.Clone(n.ended[max(0, len(n.ended)-keptInjections):])
	return true
}

// ends undoes what a rule, which counts no more, has set up, and says that it is over.
func (n *injections) ends(i *injection, why string) {
	if i.stage != nil {
		i.Seen, i.Hits = i.stage.Seen, i.stage.Hits
		n.hits += i.Hits
		n.repair(i.dev, i.stage)
	}
	if i.expiry != nil {
		n.w.Engine.Clock.Set(i.expiry, clock.Never)
	}
	i.waits, i.client = nil, nil // what is only shown keeps neither
	log := n.s.Log
	if len(n.s.Workers) > 1 { // each has counted for itself
		log = log.With("worker", slices.Index(n.s.Workers, n.w))
	}
	log.Info("inject: ends", "number", i.number, "statement", i.text, "seen", i.Seen, "hits", i.Hits, "why", why)
}

// endOne ends a rule, if it has not ended yet.
func (n *injections) endOne(i *injection, why string) {
	n.end(func(j *injection) bool { return j == i }, why)
}

// gone ends what a client's end ends: its own rules, and those for its process.
func (n *injections) gone(x *Session) {
	if len(n.rules) == 0 {
		return
	}
	last := !slices.ContainsFunc(x.w.attached, func(y *Session) bool { return y != x && y.Owner.PID == x.Owner.PID })
	n.end(func(i *injection) bool { return i.own && i.client == x || last && i.PID != 0 && i.PID == x.Owner.PID }, "the process has ended")
}
