package qp

import (
	"urdma/reason"
	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/mem"
	"urdma/verbs/abi"
)

// This file asks whether something goes wrong on purpose. A client with which nobody wants
// that pays a comparison in each place, whatever happens to others.

// Faults decides what goes wrong with a client; on the worker's thread.
type Faults interface {
	// Send is asked of each send that is taken: the enum ibv_wc_status that it fails with
	// in its turn, or IBV_WC_SUCCESS.
	Send(q *QP, opcode, length uint32) uint32
	// Misfit is asked of each send of a queue pair that has a connection: the status that
	// it fails with because the attributes of the two ends do not fit. reads is how many
	// Reads and atomics are under way with it, up to max_rd_atomic, if it is one; else 0.
	Misfit(q *QP, reads int, length uint32) uint32
	// Receive is asked of each receive that a message begins to fill, likewise.
	Receive(q *QP) uint32
	// Respond is asked of each message of the peer's: the verdict on it.
	Respond(q *QP, m Message) Verdict
	// Notify is asked of each completion event: how long it is kept back, and how long
	// after now another comes for no completion; 0: it isn't, none does.
	Notify(c *CQ) (late, again clock.Time)
	// Place is asked of each piece of a peer's RDMA Write: how long all of it but the last
	// byte stays away.
	Place(q *QP) clock.Time
	// Pick is asked which of n receives of the client's shared receive queue a message
	// takes: 0 is the oldest.
	Pick(n int) int
}

// Message is a kind of message of the peer's.
type Message uint8

// The kinds.
const (
	MessageSend  Message = iota // takes a receive
	MessageWrite                // is placed by its peer's address
	MessageRead
	MessageAtomic
)

// faultPosted fails send i, which is taken and would have been carried.
func (q *QP) faultPosted(i, opcode uint32) {
	q.SQ.At(i).fault(q.Client.Faults.Send(q, opcode, q.SQ.At(i).Length))
	q.faultMisfit(i)
}

// faultWaiting looks at the sends that have waited for a connection.
func (q *QP) faultWaiting() {
	for i := q.SQ.next; i != q.SQ.tail; i++ {
		q.faultMisfit(i)
	}
}

func (q *QP) faultMisfit(i uint32) {
	wr, reads := q.SQ.At(i), 0
	if wr.IsRead() { // backwards: each send is passed by so many Reads behind it, not by all
		for j := i; reads < int(q.Attr.MaxRdAtomic); j-- {
			if q.SQ.At(j).IsRead() {
				reads++
			}
			if j == q.SQ.head {
				break
			}
		}
	}
	wr.fault(q.Client.Faults.Misfit(q, reads, wr.Length))
}

// fault fails a send with a status, unless that is IBV_WC_SUCCESS or it has failed anyway.
func (wr *SendWR) fault(status uint32) {
	if status != abi.StatusSuccess && wr.State == SendQueued {
		wr.State, wr.status, wr.vendor = SendFailed, status, uint32(reason.Injected)
	}
}

// faultMessage asks about a message of the peer's, and notes that a refusal was asked for.
func (q *QP) faultMessage(m Message) Verdict {
	v := q.Client.Faults.Respond(q, m)
	if v.Is != Done && v.Is != NoReceive {
		q.found = finding{injected: true}
	}
	return v
}

// faultWrite asks once about an RDMA Write, which arrives in pieces.
func (q *QP) faultWrite() Verdict {
	if q.midWrite {
		return Verdict{}
	}
	q.midWrite = true
	return q.faultMessage(MessageWrite)
}

// delayed keeps a completion event back, if that is wanted. Until it is sent it stands for
// those that come behind it: a queue keeps one event, however often its program arms.
func (t *Table) delayed(c *CQ) bool {
	if c.late != nil {
		return true
	}
	d, again := c.Client.Faults.Notify(c)
	if again > 0 {
		t.Clock.Set(clock.NewTimer(func() { t.notifyAgain(c) }), t.Clock.Now+again)
	}
	if d > 0 {
		c.late = clock.NewTimer(func() {
			c.late = nil
			t.notify(c)
		})
		t.Clock.Set(c.late, t.Clock.Now+d)
	}
	return d > 0
}

// EndLate forgets an event that is kept back, of a queue that goes.
func (t *Table) EndLate(c *CQ) {
	if c.late != nil {
		t.Clock.Set(c.late, clock.Never)
		c.late = nil
	}
}

// notifyAgain sends a completion event for no completion to a program that waits for one.
func (t *Table) notifyAgain(c *CQ) {
	if c.InUse() && c.Ring.TakeArm(true) {
		t.notify(c)
	}
}

// faultPlacement places the last byte of a piece of a Write, and keeps the others back, if
// that is wanted. The piece comes again.
func (q *QP) faultPlacement(r *mem.Region, va uint64, data []byte) (keep bool) {
	now := q.t.Clock.Now
	if q.placeAt == 0 {
		late := q.Client.Faults.Place(q)
		if late == 0 {
			return false
		}
		last := len(data) - 1
		q.store(r, va+uint64(last), data[last:])
		q.placeAt = now + late
	}
	if now < q.placeAt {
		return true
	}
	q.placeAt = 0
	return false
}

// Raise sends a queue pair's program an asynchronous event (enum ibv_event_type) for no
// reason. One that says that the queue pair is in error takes it there.
func (t *Table) Raise(q *QP, event uint32) {
	switch event {
	case EventFatal, EventRequest, EventAccess:
		q.Fail(event, reason.Injected)
	default:
		t.sendAsync(q, event)
	}
}

// RaiseSRQ is Raise for a shared receive queue. In error, it takes the queue pairs along
// that draw from it (InfiniBand vol. 1).
func (t *Table) RaiseSRQ(r *RecvQueue, event uint32) {
	s := r.shared
	t.send(s.Async, abi.Bytes(&abi.AsyncEvent{EventType: event, Handle: s.Handle}))
	switch {
	case event != abi.EventSRQErr:
	case s.Domain != nil:
		t.breaks(&s.Domain.broken)
	default:
		t.breaks(&s.broken)
	}
}

// RaiseCompletion sends a completion event for no completion; false: the queue has no
// channel.
func (t *Table) RaiseCompletion(c *CQ) bool {
	if c.Channel == nil {
		return false
	}
	t.notify(c)
	return true
}

// BreakClient fails every queue pair that a client has now.
func (t *Table) BreakClient(c *Client) { t.breaks(&c.broken) }
