package verbs

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sys/unix"

	"urdma/verbs/abi"
)

// router reads the client's rdma_cm events and hands each to the id it is for.
type router struct {
	client *Client
	mu     sync.Mutex
	events *eventFile // nil until the first id
	handle uint32     // of the event channel
	ids    map[uint32]*id
}

// id is an rdma_cm id: its events in order, as long as nobody has taken them.
type id struct {
	c      *Client
	handle uint32

	mu     sync.Mutex
	queue  []abi.CMEvent
	news   chan struct{} // holds a value when queue may have grown
	over   chan struct{} // closed when the connection has ended, or urdmad has
	ended  bool
	err    error // why, if not by disconnect
	forget sync.Once
}

func newID(c *Client, handle uint32) *id {
	return &id{c: c, handle: handle, news: make(chan struct{}, 1), over: make(chan struct{})}
}

// open makes the event channel on first use.
func (r *router) open() error {
	if r.events != nil {
		return nil
	}
	var req abi.Header
	var resp abi.HandleMessage
	fds, err := call(r.client, abi.CMCreateChannel, &req, &resp)
	if err != nil {
		return fmt.Errorf("verbs: create event channel: %w", err)
	}
	fd, err := one("create event channel", fds)
	if err != nil {
		return err
	}
	events, err := newEventFile(r.client, fd, "rdma_cm events")
	if err != nil {
		return err
	}
	r.events, r.handle, r.ids = events, resp.Handle, map[uint32]*id{}
	go r.run(events)
	return nil
}

// create makes an id.
func (r *router) create() (*id, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.open(); err != nil {
		return nil, err
	}
	req := abi.CMCreateIDRequest{Channel: r.handle, PS: abi.PSTCP}
	var resp abi.HandleMessage
	if _, err := call(r.client, abi.CMCreateID, &req, &resp); err != nil {
		return nil, fmt.Errorf("verbs: create id: %w", err)
	}
	x := newID(r.client, resp.Handle)
	r.ids[x.handle] = x
	return x, nil
}

// run routes events until the channel ends.
func (r *router) run(events *eventFile) {
	for {
		ev, err := receive[abi.CMEvent](context.Background(), events)
		if err != nil {
			r.endAll(err)
			return
		}
		r.route(&ev)
	}
}

func (r *router) route(ev *abi.CMEvent) {
	r.mu.Lock()
	x := r.ids[ev.ID]
	if ev.Event == abi.CMConnectRequest {
		r.ids[ev.Child] = newID(r.client, ev.Child)
	}
	r.mu.Unlock()
	switch {
	case x != nil:
		x.put(ev)
	case ev.Event == abi.CMConnectRequest: // its listener was closed meanwhile
		go r.child(ev.Child).destroy()
	}
}

// child is the id of a connection request.
func (r *router) child(handle uint32) *id {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ids[handle]
}

func (r *router) endAll(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, x := range r.ids {
		x.end(err)
	}
}

func (x *id) put(ev *abi.CMEvent) {
	if ev.Event == abi.CMDisconnected {
		x.end(nil)
		return
	}
	x.mu.Lock()
	late := x.ended
	if !late {
		x.queue = append(x.queue, *ev)
	}
	x.mu.Unlock()
	if late && ev.Event == abi.CMConnectRequest {
		go x.c.cm.child(ev.Child).destroy() // its listener was closed just now
	}
	select {
	case x.news <- struct{}{}:
	default:
	}
}

func (x *id) end(err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.ended {
		x.ended, x.err = true, err
		close(x.over)
	}
}

// next waits for the id's next event.
func (x *id) next(ctx context.Context) (ev abi.CMEvent, err error) {
	for {
		if ev, ok := x.take(); ok {
			return ev, nil
		}
		select {
		case <-x.news:
		case <-x.over:
			if ev, ok := x.take(); ok {
				return ev, nil
			}
			return ev, x.why()
		case <-ctx.Done():
			return ev, ctx.Err()
		}
	}
}

func (x *id) take() (ev abi.CMEvent, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.queue) == 0 {
		return ev, false
	}
	ev = x.queue[0]
	x.queue = x.queue[1:]
	return ev, true
}

// why is the error of an id that has ended.
func (x *id) why() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.err != nil {
		return x.err
	}
	return fmt.Errorf("verbs: the connection ended: %w", unix.ECONNRESET)
}

// expect waits for an event of one kind and makes an error of any other.
func (x *id) expect(ctx context.Context, kind uint32) (abi.CMEvent, error) {
	ev, err := x.next(ctx)
	if err != nil || ev.Event == kind {
		return ev, err
	}
	return ev, eventError(&ev)
}

func eventError(ev *abi.CMEvent) error {
	switch ev.Event {
	case abi.CMRejected:
		return &RejectedError{PrivateData: append([]byte(nil), ev.Param.Private()...)}
	case abi.CMUnreachable, abi.CMAddrError, abi.CMRouteError:
		return fmt.Errorf("%w: %w", ErrUnreachable, unix.Errno(-ev.Status))
	}
	return fmt.Errorf("verbs: connecting failed (rdma_cm event %d): %w", ev.Event, unix.Errno(-ev.Status))
}

// destroy forgets the id; a connection it has ends in good order.
func (x *id) destroy() {
	x.forget.Do(func() {
		_ = release(x.c, abi.CMDestroyID, x.handle) // ends with the client at the latest
		x.c.cm.mu.Lock()
		delete(x.c.cm.ids, x.handle)
		x.c.cm.mu.Unlock()
		x.end(ErrClosed)
	})
}
