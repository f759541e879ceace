package injector

import (
	"fmt"
	"net/netip"
	"syscall"
	"time"

	"urdma/inject"
	"urdma/reason"
	"urdma/urdmad/control"
	"urdma/urdmad/core/cm"
	"urdma/urdmad/core/mem"
	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
)

// This file applies the rules that concern a client to its work, requests and connections.

// passing is an event to which rules may apply.
type passing struct {
	point inject.Point
	qpn   uint32
	code  int64
	bytes uint32
	call  abi.Type
}

// isFor reports whether a rule that concerns the client applies to the event.
func (i *rule) isFor(p *passing) bool {
	switch {
	case i.QPN != 0 && i.QPN != p.qpn, i.Code != inject.AnyCode && i.Code != p.code,
		i.Function != "" && !inject.Makes(p.call, i.Function):
		return false
	}
	return i.Point != inject.Respond || i.Answer == inject.NoAnswer || inject.Answers(i.Answer, p.code)
}

// next counts the event in every rule that applies, and returns the first rule that takes effect,
// or nil.
func (c *client) next(p *passing, which func(*inject.Rule) bool) (first *inject.Rule) {
	for _, i := range c.at[p.point] {
		if i.over || !i.isFor(p) || which != nil && !which(&i.Rule) || !i.Next(p.bytes) {
			continue
		}
		w := c.w
		if i.waits != nil {
			i.over = true
			i.waits.end() // which ends the rule
			continue
		}
		if i.Over() {
			i.over = true
			w.Engine.Clock.Soon(func() { w.endOne(i, "it has hit as often as it should") })
		}
		w.hits++
		if i.Hits == 1 { // log the first hit only; the total is logged at the rule's end
			w.n.server.Log.Warn("injected", "number", i.number, "statement", i.text, "client", c.x.Name(), "qpn", p.qpn)
		}
		if first == nil {
			first = &i.Rule
		}
	}
	return first
}

// status returns the status with which a rule makes a work request fail, or IBV_WC_SUCCESS.
func (c *client) status(p *passing) uint32 {
	if r := c.next(p, nil); r != nil {
		return r.Status
	}
	return abi.StatusSuccess
}

// Posted implements qp.Interceptor.
func (c *client) Posted(q *qp.QP, i, opcode uint32) {
	fail(q, i, c.status(&passing{point: inject.Send, qpn: q.QPN, code: int64(opcode), bytes: q.SQ.At(i).Length}))
	c.checkFit(q, i)
}

// fail makes a send fail, unless status is IBV_WC_SUCCESS.
func fail(q *qp.QP, i, status uint32) {
	if status != abi.StatusSuccess {
		q.SQ.At(i).Fail(status, reason.Injected)
	}
}

// Connected implements qp.Interceptor.
func (c *client) Connected(q *qp.QP) {
	delete(c.writes, q) // of an earlier connection
	for i := q.SQ.Next(); i != q.SQ.Tail(); i++ {
		c.checkFit(q, i)
	}
}

// messages maps qp's message kinds to those of package inject.
var messages = [...]int64{qp.MessageSend: inject.MessageSend, qp.MessageRead: inject.MessageRead,
	qp.MessageAtomic: inject.MessageAtomic}

// Message implements qp.Interceptor.
func (c *client) Message(q *qp.QP, m qp.Message, from *qp.RecvQueue) qp.Verdict {
	if from != nil && from.Shared() != nil {
		from.Pick(c.pick)
	}
	v := c.respond(q, messages[m])
	if from == nil || v.Is != qp.Done {
		return v
	}
	if c.notReady(q) {
		return qp.Verdict{Is: qp.NoReceive}
	}
	if status := c.status(&passing{point: inject.Receive, qpn: q.QPN, code: inject.AnyCode}); status != abi.StatusSuccess {
		return q.Recv.FailNext(from, status, reason.Injected)
	}
	return qp.Verdict{}
}

// respond returns the verdict on a message of the peer; message is package inject's kind.
func (c *client) respond(q *qp.QP, message int64) qp.Verdict {
	r := c.next(&passing{point: inject.Respond, qpn: q.QPN, code: message}, nil)
	switch {
	case r == nil:
		return qp.Verdict{}
	case r.Answer == inject.NotReady:
		return qp.Verdict{Is: qp.NoReceive}
	}
	q.Refuse(reason.Injected)
	switch {
	case r.Answer == inject.Access:
		return qp.Verdict{Is: qp.Denied, Why: mem.NoRight}
	case r.Answer == inject.Invalid && message == inject.MessageAtomic:
		return qp.Verdict{Is: qp.Denied, Why: mem.Misaligned}
	case r.Answer == inject.Invalid:
		return qp.Verdict{Is: qp.TooLong}
	case message == inject.MessageSend:
		return qp.Verdict{Is: qp.BadReceive}
	}
	return qp.Verdict{Is: qp.Denied, Why: mem.Failing}
}

// Write implements qp.Interceptor.
func (c *client) Write(q *qp.QP, r *mem.Region, va uint64, data []byte) qp.Verdict {
	w := c.writes[q]
	if w == nil {
		w = new(write)
		c.writes[q] = w
		v := c.respond(q, inject.MessageWrite)
		if v.Is != qp.Done && v.Is != qp.NoReceive { // in these cases the piece will not be tried again
			delete(c.writes, q)
		}
		if v.Is != qp.Done {
			return v
		}
	}
	if r != nil && c.keepsBytes(q, w, r, va, data) {
		return qp.Verdict{Is: qp.Busy}
	}
	return qp.Verdict{}
}

// WriteEnds implements qp.Interceptor.
func (c *client) WriteEnds(q *qp.QP) { delete(c.writes, q) }

// call delays or refuses a request; on the session's goroutine.
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

// pause delays a session's request, but not longer than its client lives.
func (c *client) pause(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end) && !c.x.HungUp(); {
		time.Sleep(min(time.Until(end), 10*time.Millisecond))
	}
}

// refuse reports whether to reject a connection request before the program gets it. It records
// that for both programs if they are on this machine.
func (n *Injector) refuse(x *control.Session, peer netip.AddrPort) bool {
	c, rejects := n.client(x), func(r *inject.Rule) bool { return r.Answer == inject.Reject }
	if c == nil || c.next(&passing{point: inject.CM, code: abi.CMConnectRequest}, rejects) == nil {
		return false
	}
	c.w.rejected = peer
	if n.Because != nil {
		n.Because(x, &abi.TraceEvent{Kind: abi.TraceReason, Code: uint32(reason.Injected)},
			fmt.Sprintf("a connection request of %v was rejected", peer))
	}
	return true
}

// Why returns an additional reason why a client's connection was refused, or "".
func (n *Injector) Why(x *control.Session, e *cm.Event) string {
	if e.Kind == cm.EventRejected && e.Local == n.workers[x.Worker()].rejected {
		return "; it was injected on purpose: urdma inject"
	}
	return ""
}
