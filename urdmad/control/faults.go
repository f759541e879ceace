package control

import (
	"fmt"
	"net/netip"
	"syscall"

	"urdma/inject"
	"urdma/inspect"
	"urdma/reason"
	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/mem"
	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
)

// This file answers those who ask whether something goes wrong, by the rules of inject.go.

// passing is what passes a point.
type passing struct {
	point inject.Point
	qpn   uint32
	code  int64
	call  abi.Type
}

// isFor reports whether a rule that concerns the client is for it.
func (i *injection) isFor(p *passing) bool {
	return !(i.QPN != 0 && i.QPN != p.qpn || i.Code != inject.AnyCode && i.Code != p.code || i.Function != "" && !inject.Makes(p.call, i.Function) ||
		i.Point == inject.Respond && i.Answer != inject.NoAnswer && !inject.Answers(i.Answer, p.code))
}

// next has every rule that is for it count, and returns the first that hits, or nil.
func (f *faults) next(p *passing, which func(*inject.Rule) bool) (first *inject.Rule) {
	for _, i := range f.at[p.point] {
		if i.over || !i.isFor(p) || which != nil && !which(&i.Rule) || !i.Next() {
			continue
		}
		n := &f.x.w.injected
		if i.Over() {
			i.over = true
			n.w.Engine.Clock.Soon(func() { n.endOne(i, "it has hit as often as it should") })
		}
		if i.waits != nil {
			i.waits.end()
			continue
		}
		n.hits++
		if i.Hits == 1 { // how many there were is said at its end
			n.s.Log.Warn("injected", "number", i.number, "statement", i.text, "client", f.x.name, "qpn", p.qpn)
		}
		if first == nil {
			first = &i.Rule
		}
	}
	return first
}

// Send is qp.Faults'.
func (f *faults) Send(q *qp.QP, opcode, _ uint32) uint32 {
	if r := f.next(&passing{point: inject.Send, qpn: q.QPN, code: int64(opcode)}, nil); r != nil {
		return r.Status
	}
	return abi.StatusSuccess
}

// Receive is qp.Faults'.
func (f *faults) Receive(q *qp.QP) uint32 {
	if r := f.next(&passing{point: inject.Receive, qpn: q.QPN, code: inject.AnyCode}, nil); r != nil {
		return r.Status
	}
	return abi.StatusSuccess
}

// messages are package inject's numbers of qp's messages.
var messages = [...]int64{qp.MessageSend: inject.MessageSend, qp.MessageWrite: inject.MessageWrite, qp.MessageRead: inject.MessageRead,
	qp.MessageAtomic: inject.MessageAtomic}

// Respond is qp.Faults'.
func (f *faults) Respond(q *qp.QP, m qp.Message) qp.Verdict {
	r := f.next(&passing{point: inject.Respond, qpn: q.QPN, code: messages[m]}, nil)
	if r == nil {
		return f.strictVerdict(q, m)
	}
	switch {
	case r.Answer == inject.NotReady:
		return qp.Verdict{Is: qp.NoReceive}
	case r.Answer == inject.Access:
		return qp.Verdict{Is: qp.Denied, Why: mem.NoRight}
	case r.Answer == inject.Invalid && m == qp.MessageAtomic:
		return qp.Verdict{Is: qp.Denied, Why: mem.Misaligned}
	case r.Answer == inject.Invalid:
		return qp.Verdict{Is: qp.TooLong}
	case m == qp.MessageSend:
		return qp.Verdict{Is: qp.BadReceive}
	}
	return qp.Verdict{Is: qp.Denied, Why: mem.Failing}
}

// Notify is qp.Faults'.
func (f *faults) Notify(*qp.CQ) (late, again clock.Time) {
	if r := f.next(&passing{point: inject.Notify, code: inject.AnyCode}, nil); r != nil {
		late = clock.Time(r.Delay)
	}
	return late, f.notifyAgain()
}

// faultCall delays a request, or refuses it.
func (x *Session) faultCall(t abi.Type) error {
	var hit inject.Rule
	x.Do(func() {
		if r := x.faults.next(&passing{point: inject.Call, code: inject.AnyCode, call: t}, nil); r != nil {
			hit = *r
		}
	})
	if hit.Delay > 0 {
		x.pause(hit.Delay)
	}
	if hit.Errno != 0 {
		return fmt.Errorf("injected on purpose, urdma inject: %w", syscall.Errno(hit.Errno))
	}
	return nil
}

// rejects reports whether a connection request is refused before the program hears of it,
// and says so to both programs that are here.
func (x *Session) rejects(peer netip.AddrPort) bool {
	if x.faults.next(&passing{point: inject.CM, code: abi.CMConnectRequest}, func(r *inject.Rule) bool { return r.Answer == inject.Reject }) == nil {
		return false
	}
	x.w.injected.cmPeer = peer
	x.because(&abi.TraceEvent{Kind: abi.TraceReason, Code: uint32(reason.Injected)}, fmt.Sprintf("a connection request of %v was rejected", peer))
	return true
}

// maxLate bounds the rdma_cm events of a client that are kept back.
const maxLate = 1024

// keptBack keeps an event back, if that is wanted, and those behind it: they come in order.
// Of too many none stays.
func (c *EventChannel) keptBack(e *abi.CMEvent) bool {
	r := c.x.faults.next(&passing{point: inject.CM, code: int64(e.Event)}, func(r *inject.Rule) bool { return r.Answer != inject.Reject })
	switch clk := &c.x.w.Engine.Clock; {
	case c.x.late >= maxLate:
		c.sendLate()
		return false
	case len(c.late) > 0:
	case r == nil:
		return false
	default:
		if c.lateTimer == nil {
			c.lateTimer = clock.NewTimer(c.sendLate)
		}
		clk.Set(c.lateTimer, clk.Now+clock.Time(r.Delay))
	}
	c.late = append(c.late, *e)
	c.x.late++
	return true
}

// sendLate sends what was kept back.
func (c *EventChannel) sendLate() {
	late := c.late
	c.forgetLate()
	for i := range late {
		c.x.w.Engine.QPs.Events.Send(c.Socket, abi.Bytes(&late[i]))
	}
}

// forgetLate forgets what was kept back.
func (c *EventChannel) forgetLate() {
	c.x.late -= len(c.late)
	if c.late = nil; c.lateTimer != nil {
		c.x.w.Engine.Clock.Set(c.lateTimer, clock.Never)
	}
}

// injection copies a rule that the viewer may see, which other workers may have as well.
func (g *gather) injection(i *injection) {
	if !g.viewer.Sees(i.by) {
		return
	}
	v := inspect.Injection{Number: i.number, Statement: i.text, PID: i.by.PID, Command: i.by.Name, UID: i.by.UID,
		Created: g.clock.time(i.since), Own: i.own, Seen: i.Seen, Hits: i.Hits, State: "active"}
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
	at, has := g.rules[v.Number]
	if !has {
		g.rules[v.Number] = len(g.snap.Injections)
		g.snap.Injections = append(g.snap.Injections, v)
		return
	}
	o := &g.snap.Injections[at]
	v.Seen, v.Hits = v.Seen+o.Seen, v.Hits+o.Hits
	*o = v
}
