package cm_test

import (
	"bytes"
	"net/netip"
	"strings"

	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/cm"
)

// program is a client of a host's manager: cm.Owner and cm.Channel.
type program struct {
	h         *host
	ends      map[*cm.ID]*end
	refuses   bool       // to adopt ids
	onRequest func(*end) // decides about a request
}

// end is a program's id with its events.
type end struct {
	p                 *program
	id                *cm.ID
	qp                *queuePair
	events            []cm.Event
	at                []clock.Time    // of the events
	onEvent           func(*cm.Event) // may be nil
	request           cm.Event        // a passive end's
	madeAt, decidedAt clock.Time
	accepted          *cm.Param // what it was accepted with, or nil
	rejected          bool
	private           string // of the reject
	destroyed         bool
}

func (h *host) newProgram() *program { return &program{h: h, ends: map[*cm.ID]*end{}} }

// newEnd makes an id.
func (p *program) newEnd() *end {
	e := &end{p: p, id: p.h.m.Create(p, p)}
	p.ends[e.id] = e
	return e
}

// Adopt is cm.Owner's.
func (p *program) Adopt(id *cm.ID) bool {
	if p.refuses {
		return false
	}
	p.ends[id] = &end{p: p, id: id, madeAt: p.h.w.now}
	return true
}

// Deliver is cm.Channel's.
func (p *program) Deliver(e *cm.Event) {
	if e.Child != nil {
		child := p.ends[e.Child]
		child.request = *e
		child.request.Param.PrivateData = bytes.Clone(e.Param.PrivateData)
		if p.onRequest != nil {
			p.onRequest(child)
		}
		return
	}
	x := p.ends[e.ID]
	if x.destroyed {
		p.h.w.t.Errorf("event %v on a destroyed id", e.Kind)
	}
	kept := *e
	kept.Param.PrivateData = bytes.Clone(e.Param.PrivateData)
	x.events, x.at = append(x.events, kept), append(x.at, p.h.w.now)
	if x.onEvent != nil {
		x.onEvent(&kept)
	}
}

// at is a socket address of a host.
func (h *host) at(port uint16) netip.AddrPort { return netip.AddrPortFrom(h.addr, port) }

var anywhere = netip.AddrPortFrom(netip.IPv4Unspecified(), 0)

// listen listens on a port number.
func (p *program) listen(port uint16, backlog int) *end {
	e := p.newEnd()
	p.h.w.must(p.h.m.Bind(e.id, p.h.at(port)))
	p.h.w.must(p.h.m.Listen(e.id, backlog))
	return e
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// connect resolves and connects.
func (e *end) connect(to netip.AddrPort, p *cm.Param) {
	m := e.p.h.m
	next := e.onEvent
	e.onEvent = func(ev *cm.Event) {
		switch {
		case ev.Kind == cm.EventAddrResolved:
			e.p.h.w.must(m.ResolveRoute(e.id))
		case ev.Kind == cm.EventRouteResolved:
			e.qp = e.p.h.newQP()
			e.p.h.w.must(m.Connect(e.id, e.qp, p))
		}
		if next != nil {
			next(ev)
		}
	}
	e.p.h.w.must(m.ResolveAddr(e.id, anywhere, to, 2*sec))
}

// accept accepts a request with a new queue pair.
func (e *end) accept(p *cm.Param) {
	e.qp, e.accepted, e.decidedAt = e.p.h.newQP(), p, e.p.h.w.now
	e.p.h.w.must(e.p.h.m.Accept(e.id, e.qp, p))
}

func (e *end) reject(private string) {
	e.rejected, e.private, e.decidedAt = true, private, e.p.h.w.now
	e.p.h.w.must(e.p.h.m.Reject(e.id, []byte(private)))
}

func (e *end) destroy() {
	e.destroyed = true
	e.p.h.m.Destroy(e.id)
}

// heard is the kinds of the events, separated by spaces.
func (e *end) heard() string {
	var kinds []string
	for _, ev := range e.events {
		kinds = append(kinds, ev.Kind.String())
	}
	return strings.Join(kinds, " ")
}

// event is the event of a kind, or nil.
func (e *end) event(kind cm.EventKind) *cm.Event {
	for i := range e.events {
		if e.events[i].Kind == kind {
			return &e.events[i]
		}
	}
	return nil
}
