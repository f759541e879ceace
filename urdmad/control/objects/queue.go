package objects

import (
	"fmt"
	"syscall"

	"urdma/urdmad/control"
	"urdma/urdmad/control/account"
	"urdma/urdmad/control/memfd"
	"urdma/urdmad/core/events"
	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
	"urdma/verbs/ring"
)

// Channel is a completion channel.
type Channel struct {
	control.Base
	Context *Context
	Socket  *events.Socket
	users   int
}

// CQ is a completion queue with its ring.
type CQ struct {
	control.Base
	CQ      *qp.CQ
	Context *Context
	ch      *Channel
	ring    *memfd.Shared
}

func (c *Context) createChannel(_ *abi.HandleMessage, r *control.Reply) error {
	var resp abi.HandleMessage
	s, bill, err := c.Session.NewEvents(account.CompletionChannels, r)
	if err != nil {
		return err
	}
	r.Body = abi.Bytes(&resp)
	c.users++
	c.Session.Do(func() { resp.Handle = c.Session.Add(&Channel{Context: c, Socket: s}, bill) })
	return nil
}

func (c *Channel) destroyChannel(*abi.HandleMessage, *control.Reply) error {
	if c.users > 0 {
		return fmt.Errorf("control: %d completion queues use the completion channel: %w", c.users, syscall.EBUSY)
	}
	c.Context.users--
	c.Session.Do(func() {
		c.Socket.Close()
		c.Remove()
	})
	return nil
}

func (c *Context) createCQ(m *abi.CreateCQRequest, r *control.Reply) (err error) {
	x := c.Session
	var ch *Channel
	if m.Channel != abi.NoHandle {
		if ch, err = control.Find[*Channel](x, m.Channel); err != nil {
			return err
		}
	}
	if err := checkEntries(x, m.CQE); err != nil {
		return err
	}
	if m.CompVector >= control.CompVectors {
		return fmt.Errorf("control: comp_vector %d, there are %d: %w", m.CompVector, control.CompVectors, syscall.EINVAL)
	}
	resp := ring.CQLayout(m.CQE)
	bill := &account.Amounts{account.CompletionQueues: 1}
	mem, at, err := x.QueueMemory("urdma-cq", bill, resp.EntriesOffset,
		resp.EntriesOffset+resp.Entries*uint32(abi.Size[abi.CQE]()))
	if err != nil {
		return err
	}
	if at.File != 0 {
		resp.Memfd = at.File
		ring.PlaceCQ(&resp, at.Heads, at.Slots, uint32(len(mem.Mem)))
	}
	q := &CQ{CQ: &qp.CQ{Client: &x.Client().Client, Async: c.Async}, Context: c, ch: ch, ring: mem}
	q.CQ.Ring.Init(mem.Mem, &resp)
	c.users++
	if ch != nil {
		ch.users++
		q.CQ.Channel = ch.Socket
	}
	x.Do(func() {
		q.CQ.Handle = x.Add(q, bill)
		resp.Handle = q.CQ.Handle
	})
	*r = control.Respond(&resp)
	r.Bring(mem)
	return nil
}

func checkEntries(x *control.Session, cqe uint32) error {
	if most := x.Limits().MaxCQE; cqe == 0 || cqe > most {
		return fmt.Errorf("control: a completion queue of %d entries (1 to %d): %w", cqe, most, syscall.EINVAL)
	}
	return nil
}

func (q *CQ) resizeCQ(m *abi.ResizeCQRequest, r *control.Reply) error {
	x := q.Session
	if err := checkEntries(x, m.CQE); err != nil {
		return err
	}
	resp := ring.CQLayout(m.CQE)
	bill := &account.Amounts{} // the queue itself is already counted
	mem, err := x.NewQueueMemory("urdma-cq", bill, resp.Bytes)
	if err != nil {
		return err
	}
	old := q.ring
	x.Worker().Turn(func() {}) // a whole turn, so that earlier posts are fetched first
	if !q.moveTo(mem, &resp, m.CQE) {
		mem.Close()
		x.Give(bill)
		return fmt.Errorf("control: a completion queue of %d entries holds more that have not been polled: %w", m.CQE,
			syscall.EINVAL)
	}
	old.Close()
	q.Resized(account.CompletionQueues, bill)
	resp.Handle = q.Handle
	*r = control.Respond(&resp)
	r.Bring(mem)
	return nil
}

// movedPerTurn is the number of completions, of 64 bytes each, that a turn moves.
const movedPerTurn = 2048

// moveTo moves completions that were not polled to a new ring. It does so only if they fit in the
// cqe entries requested (ibv_resize_cq(3)); the ring may be larger. New completions may come
// meanwhile.
func (q *CQ) moveTo(mem *memfd.Shared, layout *abi.CQResponse, cqe uint32) (fits bool) {
	old, first := &q.CQ.Ring, uint32(0)
	q.Session.Do(func() { first = old.Oldest() })
	var fresh ring.ServerCQ
	fresh.Init(mem.Mem, layout)
	q.Session.Worker().Turns(func() (more bool) {
		if fits = old.Since(first) <= cqe; !fits {
			return false
		}
		if !old.Copy(&fresh, first, movedPerTurn) {
			return true
		}
		fresh.Succeed(old)
		q.CQ.Ring, q.ring = fresh, mem
		return false
	})
	return fits
}

func (q *CQ) destroyCQ(*abi.HandleMessage, *control.Reply) error {
	busy := false
	q.Session.Do(func() {
		if busy = q.CQ.InUse(); !busy {
			q.Session.Server().Gone(q.Session, q.CQ)
			q.Remove()
		}
	})
	if busy {
		return fmt.Errorf("control: queue pairs use the completion queue: %w", syscall.EBUSY)
	}
	q.Context.users--
	if q.ch != nil {
		q.ch.users--
	}
	q.ring.Close()
	return nil
}

// End implements control.Object.
func (c *Channel) End() *memfd.Shared {
	c.Socket.Close()
	return nil
}

// End implements control.Object.
func (q *CQ) End() *memfd.Shared { return q.ring }
