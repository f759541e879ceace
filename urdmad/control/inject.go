package control

import (
	"net/netip"
	"slices"
	"sync/atomic"

	"urdma/inject"
	"urdma/urdmad/clock"
	"urdma/urdmad/impair"
)

// This file is the rules of urdma inject at work. What makes them stands in inject_script.go, what is asked
// about them in faults.go.

const (
	maxInjections   = 1024 // rules and scenarios of all users
	maxUserInjected = 128  // of one that is no admin
	keptInjections  = 64   // that have ended and are still shown
)

// injections are what goes wrong on purpose. All but calls is the engine's thread's.
type injections struct {
	calls  atomic.Bool // some rule is for requests
	s      *Server
	w      *Worker
	rules  []*injection // in the order in which they were made
	ended  []*injection // the last of them that have
	points [inject.Strictly + 1]bool
	wires  map[int]*impair.Queue // by device; those that there are
	cut    map[cut]*impair.Stage // links that are down on purpose
	hits   uint64                // ever
	cmPeer netip.AddrPort        // whose connection request was refused last
}

// injection is a rule at work.
type injection struct {
	*inject.Draw
	number uint32
	text   string
	by     *Session // that asked for it
	own    bool     // for that session's client alone
	waits  *script  // that goes on once it hits; nil: it is a rule
	since  clock.Time
	expiry *clock.Timer
	over   bool
	stage  *impair.Stage // at OnWire
	dev    int           // that it is on
}

// endAll ends some rules, and reports whether there were any.
func (n *injections) endAll(which func(*injection) bool, why string) bool {
	found := false
	for _, i := range slices.Clone(n.rules) {
		if which(i) {
			found = true
			n.end(i, why)
		}
	}
	return found
}

// end ends a rule.
func (n *injections) end(i *injection, why string) {
	at := slices.Index(n.rules, i)
	if at < 0 {
		return
	}
	n.rules = slices.Delete(n.rules, at, at+1)
	i.over = true
	if i.stage != nil {
		i.Seen, i.Hits = i.stage.Seen, i.stage.Hits
		n.hits += i.Hits
		n.repair(i.dev, i.stage)
	}
	if i.expiry != nil {
		n.w.Engine.Clock.Set(i.expiry, clock.Never)
	}
	if n.ended = append(n.ended, i); len(n.ended) > keptInjections {
		n.ended = slices.Delete(n.ended, 0, 1)
	}
	n.changed()
	log := n.s.Log
	if len(n.s.Workers) > 1 { // each has counted for itself
		log = log.With("worker", slices.Index(n.s.Workers, n.w))
	}
	log.Info("inject: ends", "number", i.number, "statement", i.text, "seen", i.Seen, "hits", i.Hits, "why", why)
}

// gone ends what a client's end ends: its own rules, and those for its process.
func (n *injections) gone(x *Session) {
	if len(n.rules) == 0 {
		return
	}
	last := !slices.ContainsFunc(x.w.attached, func(y *Session) bool { return y != x && y.Owner.PID == x.Owner.PID })
	n.endAll(func(i *injection) bool {
		return i.own && i.by == x || last && i.PID != 0 && i.PID == x.Owner.PID
	}, "the process has ended")
}

// changed has those asked alone that rules are for.
func (n *injections) changed() {
	n.points = [inject.Strictly + 1]bool{}
	for _, i := range n.rules {
		n.points[i.Point] = true
	}
	n.calls.Store(n.points[inject.Call])
	if n.points[inject.Send] || n.points[inject.Receive] || n.points[inject.Respond] || n.points[inject.Notify] || n.points[inject.Strictly] {
		n.w.Engine.QPs.SetFaults(n)
	} else {
		n.w.Engine.QPs.SetFaults(nil)
	}
}
