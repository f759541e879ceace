package verbs

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"urdma/verbs/abi"
	"urdma/verbs/ring"
)

// CQ is a completion queue with a completion channel of its own.
type CQ struct {
	c       *Client
	handle  uint32
	channel uint32
	events  *eventFile

	mu     sync.Mutex
	ring   ring.ClientCQ
	mem    []byte
	raw    [32]abi.CQE
	qps    map[uint32]*QP // that complete here, by number
	empty  uint32         // polls in a row that found nothing
	closed bool
	polled atomic.Bool // since the last post, see yieldAfterPost
}

// NewCQ makes a completion queue of at least n entries. It must hold all
// completions that may be there at once, or it overruns.
func (d *Device) NewCQ(n int) (*CQ, error) {
	q := &CQ{c: d.c, qps: map[uint32]*QP{}}
	if err := q.openChannel(d); err != nil {
		return nil, err
	}
	req := abi.CreateCQRequest{Context: d.handle, Channel: q.channel, CQE: uint32(max(n, 0))}
	var resp abi.CQResponse
	fds, err := call(d.c, abi.CreateCQ, &req, &resp)
	if err == nil {
		err = q.attach(fds, &resp)
	}
	if err != nil {
		q.closeChannel()
		return nil, fmt.Errorf("verbs: create completion queue of %d: %w", n, err)
	}
	return q, nil
}

func (q *CQ) openChannel(d *Device) error {
	req := abi.HandleMessage{Handle: d.handle}
	var resp abi.HandleMessage
	fds, err := call(d.c, abi.CreateChannel, &req, &resp)
	if err != nil {
		return fmt.Errorf("verbs: create completion channel: %w", err)
	}
	fd, err := one("create completion channel", fds)
	if err != nil {
		return err
	}
	q.channel = resp.Handle
	q.events, err = newEventFile(d.c, fd, "completion channel")
	return err
}

func (q *CQ) attach(fds []int, resp *abi.CQResponse) error {
	fd, err := one("create completion queue", fds)
	if err != nil {
		return err
	}
	defer unix.Close(fd) //nolint:errcheck // mapped or not, it is done with
	if q.mem, err = mapShared(fd, int(resp.Bytes)); err != nil {
		return err
	}
	q.handle = resp.Handle
	q.ring.Init(q.mem, resp)
	return nil
}

func (q *CQ) closeChannel() {
	_ = release(q.c, abi.DestroyChannel, q.channel) // ends with the client at the latest
	q.events.close()
}

// Handle is what asynchronous events name the queue by.
func (q *CQ) Handle() uint32 { return q.handle }

// Poll takes up to len(out) completions, oldest first, without waiting.
// ErrOverrun comes after the completions that were not lost.
func (q *CQ) Poll(out []Completion) (n int, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.polled.Store(true)
	return q.poll(out)
}

func (q *CQ) poll(out []Completion) (n int, err error) {
	if q.closed {
		return 0, ErrClosed
	}
	for n < len(out) {
		got := q.ring.Poll(q.raw[:min(len(q.raw), len(out)-n)])
		for i := range q.raw[:got] {
			fromRing(&out[n+i], &q.raw[i])
			q.account(&out[n+i])
		}
		if n += got; got == 0 {
			break
		}
	}
	switch {
	case n > 0:
		q.empty = 0
	case q.ring.Overrun():
		return 0, ErrOverrun
	case q.c.gone.Load():
		return 0, q.c.lost(nil)
	default:
		q.yield()
	}
	return n, nil
}

// account tells the queue pair that a request's end was polled.
func (q *CQ) account(c *Completion) {
	qp := q.qps[c.QPNum]
	switch {
	case qp == nil:
	case c.Op == OpRecv:
		qp.recvs.end(c.Status)
	default:
		qp.sends.end(c.Status)
	}
}

func (q *CQ) attend(qp *QP) {
	q.mu.Lock()
	q.qps[qp.Num] = qp
	q.mu.Unlock()
}

func (q *CQ) leave(qp *QP) {
	q.mu.Lock()
	delete(q.qps, qp.Num)
	q.mu.Unlock()
}

// Wait is Poll, but waits until there is at least one completion or ctx ends.
func (q *CQ) Wait(ctx context.Context, out []Completion) (n int, err error) {
	for {
		if n, err = q.Poll(out); n > 0 || err != nil || len(out) == 0 {
			return n, err
		}
		if n, err = q.armAndPoll(out); n > 0 || err != nil {
			return n, err
		}
		if _, err := receive[abi.CompEvent](ctx, q.events); err != nil {
			return 0, err
		}
	}
}

// armAndPoll asks for an event and then looks once more: a completion that came
// before the asking makes none.
func (q *CQ) armAndPoll(out []Completion) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return 0, ErrClosed
	}
	q.ring.Arm(false)
	return q.poll(out)
}

// Close destroys the queue; EBUSY while queue pairs complete there. A Wait under
// way returns ErrClosed.
func (q *CQ) Close() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return ErrClosed
	}
	if err := release(q.c, abi.DestroyCQ, q.handle); err != nil {
		return fmt.Errorf("verbs: destroy completion queue: %w", err)
	}
	q.closed = true
	q.closeChannel()
	_ = unix.Munmap(q.mem) // fails only for what is not a mapping
	return nil
}
