package injector

import (
	"fmt"
	"net/netip"
	"syscall"
	"time"

	"urdma/inject"
	"urdma/reason"
	"urdma/urdmad/control"
	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/cm"
	"urdma/urdmad/core/mem"
	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
)

// This file decides by the rules that concern a client what becomes of its work, of its requests
// and of its connections.

// passing is what passes a point.
type passing struct {
	point inject.Point
	qpn   uint32
	code  int64
	call  abi.Type
}

// isFor reports whether a rule that concerns the client is for it.
func (i *rule) isFor(p *passing) bool {
	return !(i.QPN != 0 && i.QPN != p.qpn || i.Code != inject.AnyCode && i.Code != p.code || i.Function != "" && !inject.Makes(p.call, i.Function) ||
		i.Point == inject.Respond && i.Answer != inject.NoAnswer && !inject.Answers(i.Answer, p.code))
}

// next has every rule that is for it count, and returns the first that hits, or nil.
func (c *client) next(p *passing, which func(*inject.Rule) bool) (first *inject.Rule) {
	for _, i := range c.at[p.point] {
		if i.over || !i.isFor(p) || which != nil && !which(&i.Rule) || !i.Next() {
			continue
		}
		w := c.w
		if i.Over() {
			i.over = true
			w.Engine.Clock.Soon(func() { w.endOne(i, "it has hit as often as it should") })
		}
		if i.waits != nil {
			i.waits.end()
			continue
		}
		w.hits++
		if i.Hits == 1 { // how many there were is said at its end
			w.n.server.Log.Warn("injected", "number", i.number, "statement", i.text, "client", c.x.Name(), "qpn", p.qpn)
		}
		if first == nil {
			first = &i.Rule
		}
	}
	return first
}

// Send is qp.Faults'.
func (c *client) Send(q *qp.QP, opcode, _ uint32) uint32 {
	if r := c.next(&passing{point: inject.Send, qpn: q.QPN, code: int64(opcode)}, nil); r != nil {
		return r.Status
	}
	return abi.StatusSuccess
}

// Receive is qp.Faults'.
func (c *client) Receive(q *qp.QP) uint32 {
	if r := c.next(&passing{point: inject.Receive, qpn: q.QPN, code: inject.AnyCode}, nil); r != nil {
		return r.Status
	}
	return abi.StatusSuccess
}

// messages are package inject's numbers of qp's messages.
var messages = [...]int64{qp.MessageSend: inject.MessageSend, qp.MessageWrite: inject.MessageWrite, qp.MessageRead: inject.MessageRead,
	qp.MessageAtomic: inject.MessageAtomic}

// Respond is qp.Faults'.
func (c *client) Respond(q *qp.QP, m qp.Message) qp.Verdict {
	r := c.next(&passing{point: inject.Respond, qpn: q.QPN, code: messages[m]}, nil)
	if r == nil {
		return c.strictVerdict(q, m)
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
func (c *client) Notify(*qp.CQ) (late, again clock.Time) {
	if r := c.next(&passing{point: inject.Notify, code: inject.AnyCode}, nil); r != nil {
		late = clock.Time(r.Delay)
	}
	return late, c.notifyAgain()
}

// call delays a request, or refuses it; on the session's goroutine.
func (c *client) call(t abi.Type) error {
	var hit inject.Rule
	c.w.Do(func() {
		if r := c.next(&passing{point: inject.Call, code: inject.AnyCode, call: t}, nil); r != nil {
			hit = *r
		}
	})
	if hit.Delay > 0 {
		c.pause(hit.Delay)
	}
	if hit.Errno != 0 {
		return fmt.Errorf("injected on purpose, urdma inject: %w", syscall.Errno(hit.Errno))
	}
	return nil
}

// pause delays a session's request; not longer than its client lives.
func (c *client) pause(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end) && !c.x.HungUp(); {
		time.Sleep(min(time.Until(end), 10*time.Millisecond))
	}
}

// refuse reports whether a connection request is rejected before the program hears of it, and
// says so to both programs if they are here.
func (n *Injector) refuse(x *control.Session, peer netip.AddrPort) bool {
	c := n.client(x)
	if c == nil || c.next(&passing{point: inject.CM, code: abi.CMConnectRequest}, func(r *inject.Rule) bool { return r.Answer == inject.Reject }) == nil {
		return false
	}
	c.w.rejected = peer
	if n.Because != nil {
		n.Because(x, &abi.TraceEvent{Kind: abi.TraceReason, Code: uint32(reason.Injected)}, fmt.Sprintf("a connection request of %v was rejected", peer))
	}
	return true
}

// Why is what else there is to say of why a client's connection was refused, or "".
func (n *Injector) Why(x *control.Session, e *cm.Event) string {
	if e.Kind == cm.EventRejected && e.Local == n.workers[x.Worker()].rejected {
		return "; it was injected on purpose: urdma inject"
	}
	return ""
}
