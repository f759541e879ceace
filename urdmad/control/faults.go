package control

import (
	"fmt"
	"net/netip"
	"slices"
	"syscall"

	"urdma/inject"
	"urdma/inspect"
	"urdma/reason"
	"urdma/urdmad/clock"
	"urdma/urdmad/control/account"
	"urdma/urdmad/mem"
	"urdma/urdmad/qp"
	"urdma/verbs/abi"
)

// This file answers those who ask whether something goes wrong, by the rules of inject.go.

// faults reports whether a rule is for a point; on the engine's thread.
func (n *injections) faults(p inject.Point) bool { return n.points[p] }

// passing is what passes a point, and of which client.
type passing struct {
	point inject.Point
	x     *Session
	qpn   uint32
	code  int64
	call  abi.Type
}

// isFor reports whether a rule is for it.
func (i *injection) isFor(p *passing) bool {
	switch {
	case i.Point != p.point, i.QPN != 0 && i.QPN != p.qpn, i.Code != inject.AnyCode && i.Code != p.code,
		i.PID != 0 && i.PID != p.x.Owner.PID, i.Function != "" && !inject.Makes(p.call, i.Function),
		i.Point == inject.Respond && i.Answer != inject.NoAnswer && !inject.Answers(i.Answer, p.code):
		return false
	case i.own:
		return i.by == p.x
	}
	return i.by.Owner.Sees(&p.x.Owner)
}

// next has every rule that is for it count, and returns the first that hits, or nil.
func (n *injections) next(p *passing, which func(*inject.Rule) bool) (first *inject.Rule) {
	for _, i := range n.rules {
		if i.over || !i.isFor(p) || which != nil && !which(&i.Rule) || !i.Next() {
			continue
		}
		if i.Over() {
			i.over = true
			n.w.Engine.Clock.Soon(func() { n.end(i, "it has hit as often as it should") })
		}
		if i.waits != nil {
			n.w.Engine.Clock.Soon(i.waits.goOn)
			continue
		}
		n.hits++
		if i.Hits == 1 { // how many there were is said at its end
			n.s.Log.Warn("injected", "number", i.number, "statement", i.text, "client", p.x.name, "qpn", p.qpn)
		}
		if first == nil {
			first = &i.Rule
		}
	}
	return first
}

// session is the session of a client.
func (w *Worker) session(c *qp.Client) *Session {
	for _, x := range w.attached {
		if &x.client.Client == c {
			return x
		}
	}
	return nil
}

// ask is next for a queue pair.
func (n *injections) ask(p inject.Point, q *qp.QP, code int64) *inject.Rule {
	if !n.points[p] {
		return nil
	}
	x := n.w.session(q.Client)
	if x == nil {
		return nil
	}
	return n.next(&passing{point: p, x: x, qpn: q.QPN, code: code}, nil)
}

// Send is qp.Faults'.
func (n *injections) Send(q *qp.QP, opcode, length uint32) uint32 {
	if r := n.ask(inject.Send, q, int64(opcode)); r != nil {
		return r.Status
	}
	return abi.StatusSuccess
}

// Receive is qp.Faults'.
func (n *injections) Receive(q *qp.QP) uint32 {
	if r := n.ask(inject.Receive, q, inject.AnyCode); r != nil {
		return r.Status
	}
	return abi.StatusSuccess
}

// messages are package inject's numbers of qp's messages.
var messages = [...]int64{qp.MessageSend: inject.MessageSend, qp.MessageWrite: inject.MessageWrite, qp.MessageRead: inject.MessageRead,
	qp.MessageAtomic: inject.MessageAtomic}

// Respond is qp.Faults'.
func (n *injections) Respond(q *qp.QP, m qp.Message) qp.Verdict {
	r := n.ask(inject.Respond, q, messages[m])
	if r == nil {
		return n.strictVerdict(q, m)
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
func (n *injections) Notify(c *qp.CQ) (late, again clock.Time) {
	again = n.notifyAgain(c)
	if !n.points[inject.Notify] {
		return 0, again
	}
	if x := n.w.session(c.Client); x != nil {
		if r := n.next(&passing{point: inject.Notify, x: x, code: inject.AnyCode}, nil); r != nil {
			late = clock.Time(r.Delay)
		}
	}
	return late, again
}

// faultCall delays a request, or refuses it.
func (x *Session) faultCall(t abi.Type) error {
	var hit inject.Rule
	x.do(func() {
		if r := x.w.injected.next(&passing{point: inject.Call, x: x, code: inject.AnyCode, call: t}, nil); r != nil {
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
func (n *injections) rejects(x *Session, peer netip.AddrPort) bool {
	if n.next(&passing{point: inject.CM, x: x, code: abi.CMConnectRequest}, func(r *inject.Rule) bool { return r.Answer == inject.Reject }) == nil {
		return false
	}
	n.cmPeer = peer
	x.because(&abi.TraceEvent{Kind: abi.TraceReason, Code: uint32(reason.Injected)}, fmt.Sprintf("a connection request of %v was rejected", peer))
	return true
}

// keptBack keeps an event back, if that is wanted, and those behind it: they come in order.
func (c *cmChannelObject) keptBack(e *abi.CMEvent) bool {
	n := &c.x.w.injected
	r := n.next(&passing{point: inject.CM, x: c.x, code: int64(e.Event)}, func(r *inject.Rule) bool { return r.Answer != inject.Reject })
	switch clk := &c.x.w.Engine.Clock; {
	case len(c.late) > 0:
	case r == nil:
		return false
	default:
		clk.Set(clock.NewTimer(c.sendLate), clk.Now+clock.Time(r.Delay))
	}
	c.late = append(c.late, *e)
	return true
}

// sendLate sends what was kept back.
func (c *cmChannelObject) sendLate() {
	for i := range c.late {
		c.x.w.Engine.QPs.Events.Send(c.socket, abi.Bytes(&c.late[i]))
	}
	c.late = nil
}

// injections copies what viewer may see.
func (g *gather) injections(viewer *account.Owner) {
	n := &g.w.injected
	for _, list := range [][]*injection{n.ended, n.rules} {
		for _, i := range list {
			if !viewer.Sees(&i.by.Owner) {
				continue
			}
			v := inspect.Injection{Number: i.number, Statement: i.text, PID: i.by.Owner.PID, Command: i.by.Owner.Name, UID: i.by.Owner.UID,
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
			same := func(o inspect.Injection) bool { return o.Number == v.Number }
			if at := slices.IndexFunc(g.snap.Injections, same); at >= 0 { // at another worker
				o := &g.snap.Injections[at]
				v.Seen, v.Hits = v.Seen+o.Seen, v.Hits+o.Hits
				*o = v
				continue
			}
			g.snap.Injections = append(g.snap.Injections, v)
		}
	}
}
