package injector

import (
	"urdma/inject"
	"urdma/urdmad/control"
	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/cm"
	"urdma/urdmad/core/events"
	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
)

// This file delays events.

// maxLate is the largest number of a client's rdma_cm events that are delayed.
const maxLate = 1024

// late has the delayed events of a client.
type late struct {
	channels map[*events.Socket]*lateEvents
	count    int                     // number of delayed rdma_cm events
	queues   map[*qp.CQ]*clock.Timer // timers that send the delayed completion events
}

// lateEvents are the delayed events of a channel. They keep their order.
type lateEvents struct {
	events []abi.CMEvent
	timer  *clock.Timer // sends the events
}

func (n *Injector) deliver(x *control.Session, ch *events.Socket, _ *cm.Event, v *abi.CMEvent) (kept bool) {
	c := n.client(x)
	if c == nil {
		return false
	}
	return (len(c.channels) > 0 || len(c.at[inject.CM]) > 0) && c.keepBack(ch, v)
}

// keepBack delays an event if a rule wants that, or if earlier events of its channel are delayed.
// Beyond maxLate all are sent at once.
func (c *client) keepBack(ch *events.Socket, e *abi.CMEvent) bool {
	r := c.next(&passing{point: inject.CM, code: int64(e.Event)},
		func(r *inject.Rule) bool { return r.Answer != inject.Reject })
	l := c.channels[ch]
	switch clk := &c.w.Engine.Clock; {
	case c.count >= maxLate:
		c.send(ch)
		return false
	case l != nil:
	case r == nil:
		return false
	default:
		l = &lateEvents{timer: clock.NewTimer(func() { c.send(ch) })}
		c.channels[ch] = l
		clk.Set(l.timer, clk.Now+clock.Time(r.Delay))
	}
	l.events = append(l.events, *e)
	c.count++
	return true
}

// send sends the delayed events of a channel.
func (c *client) send(ch *events.Socket) {
	l := c.channels[ch]
	c.forget(ch)
	if l != nil {
		for i := range l.events {
			c.w.Engine.QPs.Events.Send(ch, abi.Bytes(&l.events[i]))
		}
	}
}

// forget drops the delayed events of a channel.
func (c *client) forget(ch *events.Socket) {
	if l := c.channels[ch]; l != nil {
		c.count -= len(l.events)
		c.w.Engine.Clock.Set(l.timer, clock.Never)
		delete(c.channels, ch)
	}
}

// Notify implements qp.Interceptor. A delayed event stands for later ones too: a queue has one,
// however often its program arms it.
func (c *client) Notify(cq *qp.CQ) (kept bool) {
	if c.queues[cq] != nil {
		return true
	}
	t, r := c.w.Engine.QPs, c.next(&passing{point: inject.Notify, code: inject.AnyCode}, nil)
	if c.chance(abi.StrictSpurious, 1) {
		t.Clock.Set(clock.NewTimer(func() { c.notifyAgain(cq) }), t.Clock.Now+extraEvent)
	}
	if r == nil {
		return false
	}
	c.queues[cq] = clock.NewTimer(func() {
		delete(c.queues, cq)
		t.Notify(cq)
	})
	t.Clock.Set(c.queues[cq], t.Clock.Now+clock.Time(r.Delay))
	return true
}

// notifyAgain sends an event without a completion to a program that waits for one.
func (c *client) notifyAgain(cq *qp.CQ) {
	if cq.InUse() && cq.Ring.TakeArm(true) {
		c.w.Engine.QPs.Notify(cq)
	}
}

// forgetQueue drops the delayed event of a completion queue.
func (c *client) forgetQueue(cq *qp.CQ) {
	if timer := c.queues[cq]; timer != nil {
		c.w.Engine.Clock.Set(timer, clock.Never)
		delete(c.queues, cq)
	}
}

// forgetAll drops all delayed events of a client that ends.
func (c *client) forgetAll() {
	for ch := range c.channels {
		c.forget(ch)
	}
	for cq := range c.queues {
		c.forgetQueue(cq)
	}
}
