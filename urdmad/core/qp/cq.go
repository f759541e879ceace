package qp

import (
	"urdma/reason"
	"urdma/urdmad/core/events"
	"urdma/verbs/abi"
	"urdma/verbs/ring"
)

// CQ is a completion queue.
type CQ struct {
	Handle  uint32
	Client  *Client
	Channel *events.Socket // for completion events; nil: none
	Async   *events.Socket // for asynchronous events of its context
	Events  uint64         // completion events sent

	Ring    ring.ServerCQ
	overrun bool
	users   int             // see Users
	domains map[*Domain]int // XRC domains, with the number of their shared receive queues that complete here
	broken  broken
}

// InUse reports whether any queue pair completes to the queue.
func (c *CQ) InUse() bool { return c.users > 0 }

// Overrun reports whether completions were lost.
func (c *CQ) Overrun() bool { return c.overrun }

// Users returns how many times queue pairs use the queue: once for their sends and once for their
// receives.
func (c *CQ) Users() int { return c.users }

// complete writes a completion and, if the client armed for it, sends an event.
func (t *Table) complete(c *CQ, w *abi.CQE, solicited bool) {
	t.spent += slotCost
	w.Timestamp = uint64(t.Clock.Now)
	if c.Client.WatchAll || w.Status != abi.StatusSuccess {
		t.tellCompleted(c, w)
	}
	if !c.Ring.Push(w) {
		t.overran(c)
		return
	}
	c.Client.Completed = true
	if c.Ring.TakeArm(solicited || w.Status != abi.StatusSuccess) && c.Channel != nil {
		t.sendCompletionEvent(c)
	}
}

// tellMissed sends the event for completions that came between the client's last poll and its
// arming of the queue. The client has rung a doorbell because of them (urdma_abi.h).
func (c *CQ) tellMissed(t *Table) {
	if c != nil && c.Channel != nil && c.Ring.TakeMissed() {
		t.sendCompletionEvent(c)
	}
}

func (t *Table) sendCompletionEvent(c *CQ) {
	if by := c.Client.Interceptor; by != nil && by.Notify(c) {
		return
	}
	t.Notify(c)
}

// Notify sends a completion event. The queue must have a channel.
func (t *Table) Notify(c *CQ) {
	ev := abi.CompEvent{CQ: c.Handle}
	c.Events++
	t.send(c.Channel, abi.Bytes(&ev))
}

// writeArrived wakes a program that waits for a completion event that cannot come. Such a program
// has armed its send queue's completion queue with nothing posted that could complete there, so
// it waits for the Write that has just been placed. ib_send_bw -e does that on an RNIC: its
// receiver grants credits by RDMA Write, and a sender without credits waits on its completion
// queue, for ever if the first grant comes late. An event without a completion is allowed
// (ibv_get_cq_event(3)), and the program looks at its memory again.
//
// A program that has urdmad wait for it between two looks at its memory is woken too
// (Client.Completed).
func (q *QP) writeArrived() {
	q.Client.Completed = true
	c := q.SendCQ
	if c == nil || c.Channel == nil || c.users != 1 || c == q.RecvCQ || !q.SQ.idle() {
		return
	}
	if c.Ring.TakeArm(false) {
		q.t.sendCompletionEvent(c)
	}
}

// overran handles a completion queue that its client let fill up; it logs and breaks the queue
// once.
func (t *Table) overran(c *CQ) {
	t.Stats.CompletionOverrun++
	if c.overrun {
		return
	}
	t.log.Warn("completion queue overrun", "client", c.Client.Name, "cq", c.Handle, "entries", c.Ring.Capacity())
	t.BreakCQ(c)
}

// BreakCQ moves a completion queue to the error state: no more completions are written, and the
// queue pairs that complete there fail soon (InfiniBand vol. 1).
func (t *Table) BreakCQ(c *CQ) {
	c.overrun = true
	c.Ring.MarkOverrun()
	ev := abi.AsyncEvent{EventType: abi.EventCQErr, Handle: c.Handle}
	t.tellAsync(c.Client, 0, ev.EventType)
	t.send(c.Async, abi.Bytes(&ev))
	t.markBroken(&c.broken, reason.Overrun)
	for d := range c.domains {
		t.markBroken(&d.broken, reason.Overrun)
	}
}
