package verbs

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"syscall"

	"urdma/verbs/abi"
)

// eventChannel is the client's one rdma_cm event channel (rdma_create_event_channel(3)).
// Its goroutine takes each event to the id that it concerns.
type eventChannel struct {
	client *Client
	handle uint32
	socket *os.File

	mu    sync.Mutex
	ids   map[uint32]*connID
	ended bool
}

// connID is an rdma_cm id (rdma_create_id(3)).
type connID struct {
	channel  *eventChannel
	handle   uint32
	events   chan abi.CMEvent // of the handshake
	requests chan *Request    // of a listener
	offering sync.Mutex       // puts into requests, or takes all out for good
	qp       atomic.Pointer[QP]
	done     chan struct{} // closed when the connection, or urdmad, has ended
	once     sync.Once
	why      error // before done is closed
	gone     sync.Once
}

// A handshake has four events at most; of a connection that has been
// established, only its end is waited for.
const handshakeEvents = 8

func newConnID(ch *eventChannel, handle uint32) *connID {
	return &connID{channel: ch, handle: handle, events: make(chan abi.CMEvent, handshakeEvents), done: make(chan struct{})}
}

// eventChannel returns the event channel, made at the first use.
func (c *Client) eventChannel(ctx context.Context) (*eventChannel, error) {
	if err := c.sharing.Lock(ctx); err != nil { // not mu, which the end of urdmad takes while a call waits for it
		return nil, err
	}
	defer c.sharing.Unlock()
	if c.cm != nil {
		return c.cm, nil
	}
	var resp abi.HandleMessage
	fds, err := callContext(ctx, c, abi.CMCreateChannel, &abi.Header{}, &resp, -1, 1)
	if err != nil {
		return nil, err
	}
	f, err := eventSocket(fds[0], "urdma rdma_cm events")
	if err != nil {
		_ = c.callHandle(abi.CMDestroyChannel, resp.Handle) // the error that counts is the first
		return nil, err
	}
	ch := &eventChannel{client: c, handle: resp.Handle, socket: f, ids: map[uint32]*connID{}}
	c.mu.Lock()
	c.cm = ch
	c.mu.Unlock()
	if c.dead() {
		ch.endAll() // lose may have passed before the channel was there
	}
	c.readers.Go(func() { readEvents(f, ch.deliver) })
	return ch, nil
}

func (c *Client) createID(ctx context.Context, queue int) (*connID, error) {
	ch, err := c.eventChannel(ctx)
	if err != nil {
		return nil, err
	}
	var resp abi.HandleMessage
	if _, err := callContext(ctx, c, abi.CMCreateID, &abi.CMCreateIDRequest{Channel: ch.handle, PS: abi.PSTCP}, &resp, -1, 0); err != nil {
		return nil, err
	}
	id := newConnID(ch, resp.Handle)
	if queue > 0 {
		id.requests = make(chan *Request, queue)
	}
	ch.add(id)
	return id, nil
}

func (ch *eventChannel) add(id *connID) {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	ch.ids[id.handle] = id
	if ch.ended {
		id.end(ch.client.endError())
	}
}

// endAll is urdmad's end.
func (ch *eventChannel) endAll() {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	ch.ended = true
	for _, id := range ch.ids {
		id.end(ch.client.endError())
	}
}

// deliver takes one event to its id. A connection request whose listener is
// gone, or whose queue is full, is given back, which rejects it.
func (ch *eventChannel) deliver(ev *abi.CMEvent) {
	ch.mu.Lock()
	id := ch.ids[ev.ID]
	ch.mu.Unlock()
	if ev.Event == abi.CMConnectRequest {
		child := newConnID(ch, ev.Child)
		ch.add(child)
		if id == nil || !id.offer(newRequest(child, ev)) {
			go child.destroy()
		}
		return
	}
	if id == nil {
		return // late
	}
	switch ev.Event {
	case abi.CMDisconnected:
		id.end(endedBy(ev.Status))
	case abi.CMDeviceRemoval:
		id.end(ch.client.endError())
	case abi.CMTimewaitExit:
	default:
		select {
		case id.events <- *ev:
		default: // more than a handshake has
		}
	}
}

func endedBy(status int32) error {
	if status == 0 {
		return ErrDisconnected
	}
	return fmt.Errorf("%w: %w", ErrDisconnected, syscall.Errno(-status))
}

func (id *connID) offer(r *Request) bool {
	id.offering.Lock()
	defer id.offering.Unlock()
	select {
	case <-id.done:
		return false
	default:
	}
	select {
	case id.requests <- r:
		return true
	default:
		return false
	}
}

// end notes that the connection is over.
func (id *connID) end(why error) {
	id.once.Do(func() {
		id.why = why
		if q := id.qp.Load(); q != nil {
			q.state.CompareAndSwap(abi.QPSRTS, abi.QPSErr)
		}
		close(id.done)
	})
}

// request makes a request about the id whose answer says nothing.
func (id *connID) request(t abi.Type) error { return id.channel.client.callHandle(t, id.handle) }

// await waits for one event of the handshake; any other is its failure.
func (id *connID) await(ctx context.Context, want uint32) (*abi.CMEvent, error) {
	select {
	case ev := <-id.events:
		if ev.Event == want && ev.Status == 0 {
			return &ev, nil
		}
		return nil, handshakeError(&ev)
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-id.done:
	}
	select {
	case ev := <-id.events: // it was first
		if ev.Event == want && ev.Status == 0 {
			return &ev, nil
		}
		return nil, handshakeError(&ev)
	default:
		return nil, id.why
	}
}

func handshakeError(ev *abi.CMEvent) error {
	status := ev.Status
	if status < 0 {
		status = -status
	}
	switch ev.Event {
	case abi.CMRejected:
		return &RejectedError{PrivateData: append([]byte(nil), ev.Param.Private()...)}
	case abi.CMAddrError, abi.CMRouteError:
		return fmt.Errorf("verbs: no way to the peer: %w", syscall.Errno(status))
	case abi.CMUnreachable:
		return fmt.Errorf("verbs: the peer does not answer: %w", syscall.Errno(status))
	}
	return fmt.Errorf("verbs: rdma_cm event %d: %w", ev.Event, syscall.Errno(status))
}

// destroy gives the id back (rdma_destroy_id(3)). A connection request that was
// not answered is rejected by it.
func (id *connID) destroy() {
	id.gone.Do(func() {
		_ = id.request(abi.CMDestroyID) // fails only where urdmad is gone, and the id with it
		id.channel.mu.Lock()
		delete(id.channel.ids, id.handle)
		id.channel.mu.Unlock()
		id.end(ErrClosed)
	})
}
