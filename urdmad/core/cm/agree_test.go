package cm_test

import (
	"regexp"
	"syscall"

	"urdma/urdmad/core/cm"
)

// What the two ends may hear, in full, and as far as they got when they were
// destroyed.
var (
	activeStory  = regexp.MustCompile(`^(ADDR_ERROR|ADDR_RESOLVED ROUTE_RESOLVED (REJECTED|UNREACHABLE|CONNECT_ERROR|ESTABLISHED( DISCONNECTED( TIMEWAIT_EXIT)?)?))$`)
	activePart   = regexp.MustCompile(`^(ADDR_ERROR|ADDR_RESOLVED( ROUTE_RESOLVED( (REJECTED|UNREACHABLE|CONNECT_ERROR|ESTABLISHED( DISCONNECTED( TIMEWAIT_EXIT)?)?))?)?)?$`)
	passiveStory = regexp.MustCompile(`^(UNREACHABLE|CONNECT_ERROR|ESTABLISHED( DISCONNECTED( TIMEWAIT_EXIT)?)?)$`)
)

// check holds the two ends of an attempt against each other.
func (s *simulation) check(a *attempt) {
	e := a.active
	part := e.destroyed || a.waits()
	if !activeStory.MatchString(e.heard()) && !(part && activePart.MatchString(e.heard())) {
		s.t.Errorf("%s: the active end (destroyed %v) heard %q", a.token, e.destroyed, e.heard())
	}
	e.checkErrors(a.token)
	switch len(a.passive) {
	case 0:
		if e.event(cm.EventEstablished) != nil {
			s.t.Errorf("%s is established and was never requested", a.token)
		}
	case 1:
		s.checkPassive(a, a.passive[0])
		s.checkAgreement(a, a.passive[0])
	default:
		s.checkRepeated(a)
	}
	if r := e.event(cm.EventRejected); r != nil && len(a.passive) == 0 && len(r.Param.PrivateData) != 0 {
		s.t.Errorf("%s: nobody rejected it with %q", a.token, r.Param.PrivateData)
	}
}

// checkRepeated: a copy of a request may count as a new one only when its peer
// can't be waiting for an answer any more, as the listener's host reckons.
func (s *simulation) checkRepeated(a *attempt) {
	for i, b := range a.passive[1:] {
		if since := b.madeAt - a.passive[i].madeAt; since < b.p.h.timeout {
			s.t.Errorf("%s: one request was %d events, %d ms after each other", a.token, len(a.passive), since/ms)
		}
	}
}

// waits reports whether the passive end has not decided yet, for which there is no
// time limit.
func (a *attempt) waits() bool {
	if len(a.passive) == 0 {
		return false
	}
	b := a.passive[len(a.passive)-1]
	return b.accepted == nil && !b.rejected
}

// checkErrors: each kind of event has the errors that it is documented to have.
func (e *end) checkErrors(token string) {
	allowed := map[cm.EventKind][]syscall.Errno{
		cm.EventAddrResolved: {0}, cm.EventRouteResolved: {0}, cm.EventEstablished: {0},
		cm.EventAddrError: {syscall.ETIMEDOUT}, cm.EventRejected: {syscall.ECONNREFUSED},
		cm.EventUnreachable: {syscall.ETIMEDOUT}, cm.EventConnectError: {syscall.ECONNRESET, syscall.EINVAL},
		cm.EventDisconnected: {0, syscall.ETIMEDOUT}, cm.EventTimewaitExit: {0},
	}
	for _, ev := range e.events {
		found := false
		for _, errno := range allowed[ev.Kind] {
			found = found || ev.Err == errno
		}
		if !found {
			e.p.h.w.t.Errorf("%s: %v with error %v", token, ev.Kind, ev.Err)
		}
	}
}

func (s *simulation) checkPassive(a *attempt, e *end) {
	e.checkErrors(a.token)
	heard := e.heard()
	switch {
	case e.accepted == nil && heard != "",
		e.accepted != nil && !passiveStory.MatchString(heard) && !(e.destroyed && heard == ""):
		s.t.Errorf("%s: the passive end (accepted %v, destroyed %v) heard %q", a.token, e.accepted != nil, e.destroyed, heard)
	}
}

// checkAgreement checks that each end's events agree with the actions of the other.
func (s *simulation) checkAgreement(a *attempt, b *end) {
	e := a.active
	active, passive := e.event(cm.EventEstablished), b.event(cm.EventEstablished)
	switch {
	case active != nil && b.accepted == nil:
		s.t.Errorf("%s is established and was never accepted", a.token)
		return
	case passive != nil && active == nil:
		s.t.Errorf("%s is established for the passive end alone", a.token)
	case active != nil && passive == nil && !e.destroyed && e.event(cm.EventDisconnected) == nil:
		s.t.Errorf("%s is established for the active end, for ever; the passive one heard %q", a.token, b.heard())
	}
	if r := e.event(cm.EventRejected); r != nil {
		s.checkRejected(a, b, r)
	}
	if active != nil {
		s.checkParams(a, b, active)
	}
	if active != nil && passive != nil {
		s.checkEnds(a, b)
	}
}

// checkRejected: the reject is the passive end's, or comes because its
// connection is over, or because its host has forgotten the request meanwhile.
func (s *simulation) checkRejected(a *attempt, b *end, r *cm.Event) {
	e := a.active
	forgotten := e.at[len(e.at)-1]-b.decidedAt >= b.p.h.timeout && len(r.Param.PrivateData) == 0
	if !forgotten && (string(r.Param.PrivateData) != b.private || !b.rejected && !b.over()) {
		s.t.Errorf("%s was rejected with %q; the passive end rejected %v with %q, heard %q", a.token, r.Param.PrivateData,
			b.rejected, b.private, b.heard())
	}
}

// over reports whether an end's connection is.
func (e *end) over() bool {
	return e.destroyed || e.qp != nil && e.qp.gone || e.event(cm.EventDisconnected) != nil ||
		e.event(cm.EventConnectError) != nil ||
		e.event(cm.EventUnreachable) != nil
}

// checkEnds: a connection that ended for one end ended for the other.
func (s *simulation) checkEnds(a *attempt, b *end) {
	for _, pair := range [2][2]*end{{a.active, b}, {b, a.active}} {
		one, other := pair[0], pair[1]
		if one.over() && !other.destroyed && other.event(cm.EventDisconnected) == nil {
			s.t.Errorf("%s has ended for one end (%q) and not for the other (%q)", a.token, one.heard(), other.heard())
		}
	}
}

// checkParams checks that private data and depths are those that the other side sent, within the limits of
// both hosts.
func (s *simulation) checkParams(a *attempt, b *end, active *cm.Event) {
	got := &active.Param
	if string(got.PrivateData) != string(b.accepted.PrivateData) {
		s.t.Errorf("%s: the accept came with %q, sent was %q", a.token, got.PrivateData, b.accepted.PrivateData)
	}
	if got.QPN != uint32(b.qp.number) {
		s.t.Errorf("%s: connected to QP %d, the passive end's is %d", a.token, got.QPN, b.qp.number)
	}
	x, y := a.active.qp.conn.s, b.qp.conn.s
	if x.ORD > y.IRD || y.ORD > x.IRD {
		s.t.Errorf("%s: ORD %d of IRD %d, and %d of %d", a.token, x.ORD, y.IRD, y.ORD, x.IRD)
	}
	if x.ORD > uint16(a.param.InitiatorDepth) || y.ORD > uint16(b.accepted.InitiatorDepth) {
		s.t.Errorf("%s: ORD %d and %d; asked for were %d and %d", a.token, x.ORD, y.ORD, a.param.InitiatorDepth,
			b.accepted.InitiatorDepth)
	}
}
