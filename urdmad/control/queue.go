package control

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"

	"urdma/urdmad/control/account"
	"urdma/urdmad/control/memfd"
	"urdma/urdmad/core/events"
	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
	"urdma/verbs/ring"
)

// Channel is a completion channel.
type Channel struct {
	object
	Context *Context
	Socket  *events.Socket
	users   int
}

// CQ is a completion queue with its ring.
type CQ struct {
	object
	CQ      *qp.CQ
	Context *Context
	ch      *Channel
	ring    *memfd.Shared
}

func (c *Context) createChannel(_ *abi.HandleMessage, r *Reply) error {
	var resp abi.HandleMessage
	s, bill, err := c.x.newEvents(account.CompletionChannels, r)
	if err != nil {
		return err
	}
	r.Body = abi.Bytes(&resp)
	c.users++
	c.x.Do(func() { resp.Handle = c.x.add(&Channel{Context: c, Socket: s}, bill) })
	return nil
}

func (c *Channel) destroyChannel(*abi.HandleMessage, *Reply) error {
	if c.users > 0 {
		return fmt.Errorf("control: %d completion queues use the completion channel: %w", c.users, syscall.EBUSY)
	}
	c.Context.users--
	c.x.Do(func() {
		c.Socket.Close()
		c.remove()
	})
	return nil
}

func (c *Context) createCQ(m *abi.CreateCQRequest, r *Reply) (err error) {
	x := c.x
	var ch *Channel
	if m.Channel != abi.NoHandle {
		if ch, err = Find[*Channel](x, m.Channel); err != nil {
			return err
		}
	}
	if err := x.checkEntries(m.CQE); err != nil {
		return err
	}
	if m.CompVector >= compVectors {
		return fmt.Errorf("control: comp_vector %d, there are %d: %w", m.CompVector, compVectors, syscall.EINVAL)
	}
	resp := ring.CQLayout(m.CQE)
	bill := &account.Amounts{account.CompletionQueues: 1}
	mem, at, err := x.queueMemory("urdma-cq", bill, resp.EntriesOffset,
		resp.EntriesOffset+resp.Entries*uint32(abi.Size[abi.CQE]()))
	if err != nil {
		return err
	}
	if at.File != 0 {
		resp.Memfd = at.File
		ring.PlaceCQ(&resp, at.Heads, at.Slots, uint32(len(mem.Mem)))
	}
	q := &CQ{CQ: &qp.CQ{Client: &x.client.Client, Async: c.Async}, Context: c, ch: ch, ring: mem}
	q.CQ.Ring.Init(mem.Mem, &resp)
	c.users++
	if ch != nil {
		ch.users++
		q.CQ.Channel = ch.Socket
	}
	x.Do(func() {
		q.CQ.Handle = x.add(q, bill)
		resp.Handle = q.CQ.Handle
	})
	*r = Respond(&resp)
	r.bring(mem)
	return nil
}

func (x *Session) checkEntries(cqe uint32) error {
	if most := x.most().MaxCQE; cqe == 0 || cqe > most {
		return fmt.Errorf("control: a completion queue of %d entries (1 to %d): %w", cqe, most, syscall.EINVAL)
	}
	return nil
}

func (q *CQ) resizeCQ(m *abi.ResizeCQRequest, r *Reply) error {
	x := q.x
	if err := x.checkEntries(m.CQE); err != nil {
		return err
	}
	resp := ring.CQLayout(m.CQE)
	bill := cqAmounts(&resp)
	bill[account.CompletionQueues] = 0 // the queue itself is already counted
	mem, err := x.newQueueMemory("urdma-cq", bill, int(resp.Bytes))
	if err != nil {
		return err
	}
	old := q.ring
	x.w.turn(func() {}) // a whole turn, so that earlier posts are fetched first
	if !q.moveTo(mem, &resp, m.CQE) {
		mem.Close()
		x.Give(bill)
		return fmt.Errorf("control: a completion queue of %d entries holds more that have not been polled: %w", m.CQE,
			syscall.EINVAL)
	}
	old.Close()
	q.resized(account.CompletionQueues, bill)
	resp.Handle = q.handle
	*r = Respond(&resp)
	r.bring(mem)
	return nil
}

// cqAmounts returns the resources of a completion queue.
func cqAmounts(layout *abi.CQResponse) *account.Amounts {
	return &account.Amounts{account.CompletionQueues: 1, account.QueueBytes: uint64(layout.Bytes), account.Mappings: 1}
}

// movedPerTurn is the number of completions, of 64 bytes each, that a turn moves.
const movedPerTurn = 2048

// moveTo moves completions that were not polled to a new ring. It does so only if they fit in the
// cqe entries requested (ibv_resize_cq(3)); the ring may be larger. New completions may come
// meanwhile.
func (q *CQ) moveTo(mem *memfd.Shared, layout *abi.CQResponse, cqe uint32) (fits bool) {
	old, first := &q.CQ.Ring, uint32(0)
	q.x.Do(func() { first = old.Oldest() })
	var fresh ring.ServerCQ
	fresh.Init(mem.Mem, layout)
	q.x.w.turns(func() (more bool) {
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

func (q *CQ) destroyCQ(*abi.HandleMessage, *Reply) error {
	busy := false
	q.x.Do(func() {
		if busy = q.CQ.InUse(); !busy {
			q.x.s.gone(q.x, q.CQ)
			q.remove()
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

// bring adds the descriptor of a queue's memory to the reply, if the client has not been given it
// before. The reply owns the descriptor: later requests of the batch, even the removal of the
// queue, must not let its number name another file before the reply is sent.
func (r *Reply) bring(mem *memfd.Shared) {
	if fd := mem.TakeFD(); fd >= 0 {
		r.FDs, r.Done = []int{fd}, func() { _ = unix.Close(fd) } // the client has its copy
	}
}

// fileAmounts returns the resources of memory for queues.
func fileAmounts(bytes int) *account.Amounts {
	return &account.Amounts{account.QueueBytes: uint64(bytes), account.Mappings: 1}
}

// queueMemory takes a queue's resources and makes its memory of so many bytes, heads included. If
// the client has a pool, the memory is in the pool and at is its location; otherwise it is a file
// of its own.
func (x *Session) queueMemory(name string, bill *account.Amounts, heads, bytes uint32) (m *memfd.Shared, at memfd.Place,
	err error) {
	if x.pool == nil || bytes > memfd.MostPart {
		bytes = max(4096, (bytes+4095)&^4095)
		bill[account.QueueBytes] += uint64(bytes)
		bill[account.Mappings]++
		m, err = x.newQueueMemory(name, bill, int(bytes))
		return m, at, err
	}
	if err := x.Take(bill); err != nil {
		return nil, at, err
	}
	if m, at, err = x.pool.New(int(heads), int(bytes-heads)); err != nil {
		x.Give(bill)
	}
	return m, at, err
}

// newQueueMemory takes a queue's resources and makes its memory as a file of its own.
func (x *Session) newQueueMemory(name string, bill *account.Amounts, bytes int) (*memfd.Shared, error) {
	if err := x.Take(bill); err != nil {
		return nil, err
	}
	m, err := memfd.New(name, bytes)
	if err != nil {
		x.Give(bill)
	}
	return m, err
}
