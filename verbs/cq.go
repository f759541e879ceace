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
	channel *CompChannel // or nil
	handle  uint32
	events  chan struct{} // a token: urdmad raised the event
	done    chan struct{}
	spin    atomic.Int64 // ns that Wait polls before it sleeps
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
		return nil, fmt.Errorf("verbs: completion queue of %d entries, expected 1 to %d: %w", cqe, x.device.MaxCQE, syscall.EINVAL)
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
		_ = c.callHandle(abi.DestroyCQ, resp.Handle) // the error that counts is the first
		return nil, err
	}
	q.queue.init(q.mem, &resp)
	q.bells.Init(c.urdmad.Bells, 0)
	if channel != nil {
		channel.join(q)
	}
	c.cqs.Add(q.handle, q)
	if c.dead() {
		q.wake() // lose may have passed before the queue was in the table
	}
	return q, nil
}

// Entries is how many completions the queue holds.
func (q *CQ) Entries() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.queue.ring.Entries()
}

// Resize changes how many completions the queue holds, to at least n
// (ibv_resize_cq(3)); those that wait, and Arm, stay. EINVAL: it is less than what
// waits, or more than the device has. Poll may be called at the same time, and waits
// for it to end.
func (q *CQ) Resize(n int) error {
	if n < 1 || n > q.ctx.device.MaxCQE {
		return fmt.Errorf("verbs: completion queue of %d entries, expected 1 to %d: %w", n, q.ctx.device.MaxCQE, syscall.EINVAL)
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
	if err != nil { // urdmad has moved the queue to where we can't follow
		q.ctx.client.session.Lose()
		return err
	}
	q.queue.init(mem, &resp)
	session.Unmap(q.mem)
	q.mem = mem
	return nil
}

// Poll takes up to len(out) completions, oldest first, and does not wait
// (ibv_poll_cq(3)). Once urdmad is gone the posted work comes out flushed, then
// ErrGone. ErrOverrun means that completions were lost. On a core that urdmad
// shares, polls that find nothing give the core away.
func (q *CQ) Poll(out []Completion) (int, error) {
	n, wish, err := q.poll(out)
	if n == 0 && err == nil && len(out) > 0 {
		q.giveCore(wish)
	}
	return n, err
}

// giveCore follows a poll that found nothing. A yield meets only threads of our
// own scheduling group; urdmad, started in another session or by systemd, may be
// in another and get a core that we poll on only when our slice ends,
// milliseconds later. So where it needs this core it gets it by our waiting.
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

// announceWait gives the bells of the worker that needs this core, nil if none
// does or not all queues were looked at. If the queue is empty, that worker knows
// from then on that we wait.
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

// poll also returns when urdmad wants the core.
func (q *CQ) poll(out []Completion) (n int, wish yield.Wish, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return 0, wish, ErrClosed
	}
	q.yield.Polled()
	dead := q.ctx.client.dead() // before the ring: what it holds then is all there will be
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

// Arm asks for one event for the next completion, or with solicitedOnly for the
// next that is solicited or failed (ibv_req_notify_cq(3)). Poll once more
// afterwards: completions that are there already raise none.
func (q *CQ) Arm(solicitedOnly bool) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return ErrClosed
	}
	q.queue.ring.Arm(solicitedOnly)
	if q.ctx.client.dead() {
		signal(q.events) // as urdmad would for what is flushed
	}
	return nil
}

// Events gets a value when an armed queue has completions, or urdmad is gone;
// it is for select statements. Values may come too many: Poll tells.
func (q *CQ) Events() <-chan struct{} { return q.events }

func (q *CQ) wake() {
	signal(q.events)
	if q.channel != nil {
		signal(q.channel.news)
	}
}

// SetSpin makes Wait poll for this long before it sleeps. Polling is several
// times faster than being woken and keeps a core busy. Initially 0.
func (q *CQ) SetSpin(d time.Duration) { q.spin.Store(int64(d)) }

// Wait is Poll that waits until there is a completion, ctx ends, urdmad is gone
// or the queue is closed. It arms the queue as needed.
func (q *CQ) Wait(ctx context.Context, out []Completion) (int, error) {
	return q.wait(ctx, out, nil, nil)
}

// wait also ends with the error of ended once stop is closed and over says that
// nothing more will come.
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
		case <-q.ctx.client.Gone(): // the next poll says so
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

// passOn lets another waiter look at what this one may have left: completions, or an
// error that stays.
func (q *CQ) passOn() {
	if q.waiters.Load() > 1 {
		q.wake()
	}
}

// politeEvery is how many empty polls of Wait lie between two chances for
// other goroutines of this thread.
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

// join and leave note whose work completes here. Leaving, the completions of
// the queue pair go too, as ibv_destroy_qp(3) has it: urdmad is done with it,
// none comes after these.
func (q *CQ) join(p *QP, sends bool) {
	if q == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.queue.join(&p.pair, sends)
	q.bells = p.bells // a worker that serves it: its wishes about yielding
}

func (q *CQ) leave(p *QP) { q.forget(p, (*completions).leave) }

// drop forgets the completions of a queue pair that are not polled yet.
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
