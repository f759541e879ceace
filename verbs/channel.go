package verbs

import (
	"context"
	"os"
	"slices"
	"sync"

	"urdma/verbs/abi"
	"urdma/verbs/session"
)

// CompChannel reports events of its completion queues (ibv_create_comp_channel(3)). Many queues may share
// one.
type CompChannel struct {
	ctx    *Context
	handle uint32
	socket *os.File
	done   chan struct{}
	once   sync.Once
	news   chan struct{} // holds a token if some queue has an event

	mu  sync.Mutex
	cqs []*CQ
}

// CreateCompChannel makes a completion channel.
func (x *Context) CreateCompChannel() (*CompChannel, error) {
	return x.createCompChannel(context.Background())
}

func (x *Context) createCompChannel(ctx context.Context) (*CompChannel, error) {
	c := x.client
	c.making.RLock()
	defer c.making.RUnlock()
	var resp abi.HandleMessage
	fds, err := callContext(ctx, c, abi.CreateChannel, &abi.HandleMessage{Handle: x.handle}, &resp, -1, 1)
	if err != nil {
		return nil, err
	}
	f, err := session.EventSocket(fds[0], "urdma completion channel")
	if err != nil {
		_ = c.callHandle(abi.DestroyChannel, resp.Handle) // the first error is the one to return
		return nil, err
	}
	ch := &CompChannel{ctx: x, handle: resp.Handle, socket: f, done: make(chan struct{}), news: make(chan struct{}, 1)}
	c.channels.Add(ch.handle, ch)
	c.readers.Go(ch.read)
	return ch, nil
}

// read delivers events to their queues; it runs in its own goroutine. An event of a closed queue is ignored.
func (ch *CompChannel) read() {
	c := ch.ctx.client
	session.ReadEvents(ch.socket, func(ev *abi.CompEvent) {
		if q, ok := c.cqs.Get(ev.CQ); ok {
			q.wake()
		}
	})
}

// Wait returns the next completion queue with an event after Arm (ibv_get_cq_event(3)); events need no
// acknowledgement. An event that Wait returns is no longer seen by Wait and Events of that queue.
func (ch *CompChannel) Wait(ctx context.Context) (*CQ, error) {
	for {
		if q := ch.signalled(); q != nil {
			return q, nil
		}
		select {
		case <-ch.news:
			continue
		default:
		}
		select {
		case <-ch.news:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-ch.done:
			return nil, ErrClosed
		case <-ch.ctx.client.Gone():
			if q := ch.signalled(); q != nil {
				return q, nil
			}
			return nil, ch.ctx.client.endError()
		}
	}
}

// signalled takes the event of one queue; queues take turns.
func (ch *CompChannel) signalled() *CQ {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	for i, q := range ch.cqs {
		select {
		case <-q.events:
			copy(ch.cqs[i:], ch.cqs[i+1:])
			ch.cqs[len(ch.cqs)-1] = q
			signal(ch.news) // another goroutine may wait for another queue
			return q
		default:
		}
	}
	return nil
}

func (ch *CompChannel) join(q *CQ) {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	ch.cqs = append(ch.cqs, q)
}

func (ch *CompChannel) leave(q *CQ) {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if i := slices.Index(ch.cqs, q); i >= 0 {
		ch.cqs = slices.Delete(ch.cqs, i, i+1)
	}
}

// Close destroys the channel; EBUSY while a completion queue uses it (ibv_destroy_comp_channel(3)).
func (ch *CompChannel) Close() error {
	c := ch.ctx.client
	if err := c.destroy(abi.DestroyChannel, ch.handle); err != nil {
		return err
	}
	c.channels.Remove(ch.handle)
	ch.release()
	return nil
}

func (ch *CompChannel) release() {
	ch.once.Do(func() { close(ch.done) })
	ch.socket.Close()
}

// signal puts a token into a channel that holds one.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
