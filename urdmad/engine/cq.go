package engine

import (
	"urdma/verbs/abi"
	"urdma/verbs/ring"
)

// CQ is a completion queue.
type CQ struct {
	Handle  uint32
	Client  *Client
	Channel *EventSocket // nil: none
	Async   *EventSocket // the context's
	Events  uint64       // completion events sent

	Ring    ring.ServerCQ
	overrun bool
	users   int // queue pairs that complete here
}

// InUse reports whether a queue pair still completes here.
func (c *CQ) InUse() bool { return c.users > 0 }

// complete writes a completion and, if the client armed for it, sends an event.
func (e *Engine) complete(c *CQ, w *abi.CQE, solicited bool) {
	w.Timestamp = uint64(e.now)
	if !c.Ring.Push(w) {
		e.overrunCQ(c)
		return
	}
	if c.Ring.TakeArm(solicited || w.Status != abi.StatusSuccess) && c.Channel != nil {
		e.sendCompEvent(c)
	}
}

func (e *Engine) sendCompEvent(c *CQ) {
	ev := abi.CompEvent{CQ: c.Handle}
	c.Events++
	e.SendEvent(c.Channel, abi.Bytes(&ev))
}

// writeArrived wakes a program that waits for an event where none can come: it
// armed its send queue's completion queue with nothing posted that could
// complete there, so what it waits for is the Write that has just landed.
// ib_send_bw -e does that on an RNIC: its receiver grants credits by RDMA Write,
// and a sender without credits waits on its completion queue, for ever if the
// first grant comes late. An event with nothing to poll is allowed
// (ibv_get_cq_event(3)), and the program looks at its memory again.
func (e *Engine) writeArrived(qp *QP) {
	c := qp.SendCQ
	if c.Channel == nil || c.users != 1 || c == qp.RecvCQ || qp.sqHead != qp.sqTail {
		return
	}
	if prod, err := qp.Ring.SQ.Prod(qp.sqTail); err != nil || prod != qp.sqTail {
		return
	}
	if c.Ring.TakeArm(false) {
		e.sendCompEvent(c)
	}
}

// overrunCQ reports a completion queue that its client let fill up, once.
func (e *Engine) overrunCQ(c *CQ) {
	e.Stats.CompletionOverrun++
	if c.overrun {
		return
	}
	c.overrun = true
	c.Ring.MarkOverrun()
	e.log.Warn("completion queue overrun", "client", c.Client.Name, "cq", c.Handle, "entries", c.Ring.Capacity())
	ev := abi.AsyncEvent{EventType: abi.EventCQErr, Handle: c.Handle}
	e.SendEvent(c.Async, abi.Bytes(&ev))
	for _, qp := range e.qps {
		if qp.SendCQ == c || qp.RecvCQ == c {
			e.failQP(qp, abi.EventQPFatal)
		}
	}
}
