package verbs

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"urdma/verbs/abi"
	"urdma/verbs/ring"
	"urdma/verbs/session"
	"urdma/verbs/yield"
)

// CQ is a completion queue (ibv_create_cq(3)).
type CQ struct {
	ctx     *Context
	channel *CompChannel // may be nil
	handle  uint32
	events  chan struct{} // holds a token if there was an event
	done    chan struct{}
	spin    atomic.Int64 // ns for which Wait polls before it sleeps
	waiters atomic.Int32

	mu     sync.Mutex
	closed bool
	queue  completions
	mem    []byte
	bells  ring.ClientBells

	yield yield.Poll
}

// CreateCQ makes a completion queue for at least cqe completions. Without a
// channel (nil) it can be polled but not waited for.
func (x *Context) CreateCQ(cqe int, channel *CompChannel) (*CQ, error) {
	return x.createCQ(context.Background(), cqe, channel)
}

func (x *Context) createCQ(ctx context.Context, cqe int, channel *CompChannel) (*CQ, error) {
	if cqe < 1 || cqe > x.device.MaxCQE {
		return nil, fmt.Errorf("verbs: completion queue of %d entries, expected 1 to %d: %w", cqe, x.device.MaxCQE,
			syscall.EINVAL)
	}
	c := x.client
	req := abi.CreateCQRequest{Context: x.handle, CQE: uint32(cqe)}
	if channel != nil {
		req.Channel = channel.handle
	}
	c.making.RLock()
	defer c.making.RUnlock()
	var resp abi.CQResponse
	fds, err := callContext(ctx, c, abi.CreateCQ, &req, &resp, -1, 1)
	if err != nil {
		return nil, err
	}
	q := &CQ{ctx: x, channel: channel, handle: resp.Handle, events: make(chan struct{}, 1), done: make(chan struct{})}
	if q.mem, err = mapCQ(&resp, fds[0]); err != nil {
		_ = c.callHandle(abi.DestroyCQ, resp.Handle) // the first error is the one to return
		return nil, err
	}
	q.queue.init(q.mem, &resp)
	q.bells.Init(c.urdmad.Bells, 0)
	if channel != nil {
		channel.join(q)
	}
	c.cqs.Add(q.handle, q)
	if c.dead() {
		q.wake() // the client may have been lost before the queue was in the table
	}
	return q, nil
}

// Entries returns the number of completions that the queue holds.
func (q *CQ) Entries() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.queue.ring.Entries()
}

// Resize changes the number of completions that the queue holds, to at least n (ibv_resize_cq(3)); waiting
// completions and the effect of Arm are kept. EINVAL: n is less than the number of waiting completions, or
// more than the device allows. Poll may be called concurrently; it waits until Resize returns.
func (q *CQ) Resize(n int) error {
	if n < 1 || n > q.ctx.device.MaxCQE {
		return fmt.Errorf("verbs: completion queue of %d entries, expected 1 to %d: %w", n, q.ctx.device.MaxCQE,
			syscall.EINVAL)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return ErrClosed
	}
	if err := descriptorRoom(); err != nil {
		return err
	}
	var resp abi.CQResponse
	fds, err := call(q.ctx.client, abi.ResizeCQ, &abi.ResizeCQRequest{Handle: q.handle, CQE: uint32(n)}, &resp, -1, 1)
	if err != nil {
		return err
	}
	mem, err := mapCQ(&resp, fds[0])
	if err != nil { // urdmad has moved the queue, so the old ring is no longer used
		q.ctx.client.session.Lose()
		return err
	}
	q.queue.init(mem, &resp)
	session.Unmap(q.mem)
	q.mem = mem
	return nil
}

// Poll takes up to len(out) completions, oldest first, and does not wait (ibv_poll_cq(3)). Once urdmad has
// ended, posted work completes as flushed; after that the error is ErrGone. ErrOverrun means that completions
// were lost. If urdmad runs on the same core, empty polls yield the core to it.
func (q *CQ) Poll(out []Completion) (int, error) {
	n, wish, err := q.poll(out)
	if n == 0 && err == nil && len(out) > 0 {
		q.giveCore(wish)
	}
	return n, err
}

// giveCore follows an empty poll. A yield reaches only threads of our own scheduling group. If urdmad was
// started in another session or by systemd, it may be in another group and get the core on which we poll only
// when our time slice ends, milliseconds later. So if it needs this core we sleep.
func (q *CQ) giveCore(wish yield.Wish) {
	if !q.yield.Empty(wish) {
		return
	}
	all := q.ctx.client.round.Ends(q.handle)
	bells, empty := q.announceWait(yield.CurrentCore(), all)
	switch {
	case bells == nil:
		q.yield.Rest(wish.Alone)
	case empty:
		bells.Wait(wish.Alone.Wait())
	}
}

// announceWait returns the doorbells of the worker that needs this core; nil if none does, or not all queues
// were polled. If the queue is empty, the worker is told that this goroutine waits.
func (q *CQ) announceWait(core uint32, all bool) (bells *ring.ClientBells, empty bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || !q.bells.Polls(core) || !all {
		return nil, false
	}
	b := q.bells
	b.Announce(true)
	if empty = q.queue.ring.Empty(); !empty {
		b.Announce(false)
	}
	return &b, empty
}

// poll also returns when urdmad wants this goroutine to yield.
func (q *CQ) poll(out []Completion) (n int, wish yield.Wish, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return 0, wish, ErrClosed
	}
	q.yield.Polled()
	dead := q.ctx.client.dead() // before the ring is read: if urdmad has ended, the ring gets no more completions
	for n < len(out) {
		got := q.queue.take(len(out)-n, dead)
		if len(got) == 0 {
			break
		}
		for i := range got {
			out[n].from(&got[i])
			n++
		}
	}
	switch {
	case n > 0:
		q.yield.Found()
		q.ctx.client.round.Found()
		if !dead {
			q.bells.Found()
		}
	case len(out) == 0:
	case q.queue.ring.Overrun():
		err = ErrOverrun
	case dead:
		err = q.ctx.client.endError()
	default:
		_, every, _, alone := q.bells.Yield()
		wish = yield.Wish{Every: every, Alone: yield.Alone(alone)}
	}
	return n, wish, err
}

// Arm requests one event for the next completion or, with solicitedOnly, for the next solicited or failed one
// (ibv_req_notify_cq(3)). Poll once more afterwards: existing completions cause no event.
func (q *CQ) Arm(solicitedOnly bool) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return ErrClosed
	}
	q.queue.ring.Arm(solicitedOnly)
	if q.ctx.client.dead() {
		signal(q.events) // as urdmad would do for flushed work
	}
	return nil
}

// Events receives a value when an armed queue has completions, or urdmad has ended; it is for select
// statements. There may be superfluous values: call Poll.
func (q *CQ) Events() <-chan struct{} { return q.events }

func (q *CQ) wake() {
	signal(q.events)
	if q.channel != nil {
		signal(q.channel.news)
	}
}

// SetSpin makes Wait poll for this long before it sleeps. Polling reacts several times faster than waking up,
// and keeps a core busy. Initially 0.
func (q *CQ) SetSpin(d time.Duration) { q.spin.Store(int64(d)) }

// Wait is like Poll, but waits until there is a completion, ctx ends, urdmad ends or the queue is closed. It
// arms the queue as needed.
func (q *CQ) Wait(ctx context.Context, out []Completion) (int, error) {
	return q.wait(ctx, out, nil, nil)
}

// wait also ends, with the error of over, once stop is closed and over returns an error.
func (q *CQ) wait(ctx context.Context, out []Completion, stop <-chan struct{}, over func() error) (int, error) {
	if len(out) == 0 {
		return 0, nil
	}
	if q.channel == nil {
		return 0, ErrNoChannel
	}
	if n, err := q.spinning(ctx, out); n > 0 || err != nil {
		return n, err
	}
	q.waiters.Add(1)
	defer q.waiters.Add(-1)
	for {
		if err := q.Arm(false); err != nil {
			return 0, err
		}
		n, _, err := q.poll(out)
		if n > 0 || err != nil {
			q.passOn()
			return n, err
		}
		select {
		case <-q.events:
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-q.done:
			return 0, ErrClosed
		case <-q.ctx.client.Gone(): // the next poll returns the error
		case <-stop:
			if n, _, err := q.poll(out); n > 0 || err != nil {
				q.passOn()
				return n, err
			}
			if err := over(); err != nil {
				return 0, err
			}
			stop = nil
		}
	}
}

// passOn wakes another waiter, because there may be more completions, or an error that persists.
func (q *CQ) passOn() {
	if q.waiters.Load() > 1 {
		q.wake()
	}
}

// politeEvery is the number of empty polls after which Wait lets other goroutines of this thread run.
const politeEvery = 64

func (q *CQ) spinning(ctx context.Context, out []Completion) (int, error) {
	spin := q.spin.Load()
	if spin == 0 {
		n, _, err := q.poll(out)
		return n, err
	}
	for i, end := 1, yield.Monotonic()+spin; ; i++ {
		n, err := q.Poll(out)
		if n > 0 || err != nil {
			return n, err
		}
		if i%politeEvery != 0 {
			continue
		}
		if ctx.Err() != nil || yield.Monotonic() > end {
			return 0, nil
		}
		runtime.Gosched()
	}
}

// Close destroys the queue; EBUSY while a queue pair uses it
// (ibv_destroy_cq(3)).
func (q *CQ) Close() error {
	c := q.ctx.client
	if err := c.destroy(abi.DestroyCQ, q.handle); err != nil {
		return err
	}
	c.cqs.Remove(q.handle)
	q.release()
	return nil
}

func (q *CQ) release() {
	if q.channel != nil {
		q.channel.leave(q)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	q.closed = true
	close(q.done)
	session.Unmap(q.mem)
}

// join and leave record which queue pairs complete here. leave also removes the queue pair's completions, as
// ibv_destroy_qp(3) does; urdmad has destroyed it, so no others come.
func (q *CQ) join(p *QP, sends bool) {
	if q == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.queue.join(&p.pair, sends)
	q.bells = p.bells // of a worker that serves the queue, which state when to yield
}

func (q *CQ) leave(p *QP) { q.forget(p, (*completions).leave) }

// drop removes completions of a queue pair that were not polled yet.
func (q *CQ) drop(p *QP) { q.forget(p, (*completions).drop) }

func (q *CQ) forget(p *QP, how func(*completions, *completionPair)) {
	if q == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed {
		how(&q.queue, &p.pair)
	}
}
