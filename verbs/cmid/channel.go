package cmid

import (
	"context"
	"os"
	"sync"

	"urdma/verbs/abi"
	"urdma/verbs/session"
)

// Channel is the only rdma_cm event channel of a client (rdma_create_event_channel(3)).
type Channel struct {
	session *session.Session
	handle  uint32
	socket  *os.File

	mu    sync.Mutex
	ids   map[uint32]*ID
	ended bool
}

// NewChannel makes an event channel; the caller must then run Read.
func NewChannel(ctx context.Context, s *session.Session) (*Channel, error) {
	var resp abi.HandleMessage
	fds, err := session.Call(ctx, s, abi.CMCreateChannel, &abi.Header{}, &resp, -1, 1)
	if err != nil {
		return nil, err
	}
	f, err := session.EventSocket(fds[0], "urdma rdma_cm events")
	if err != nil {
		_ = s.CallHandle(abi.CMDestroyChannel, resp.Handle) // the first error is the one to return
		return nil, err
	}
	return &Channel{session: s, handle: resp.Handle, socket: f, ids: map[uint32]*ID{}}, nil
}

// Read delivers events to their ids until urdmad ends or Close is called.
func (ch *Channel) Read() { session.ReadEvents(ch.socket, ch.deliver) }

// Close ends Read.
func (ch *Channel) Close() { ch.socket.Close() }

// End ends every id, because urdmad has ended.
func (ch *Channel) End() {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	ch.ended = true
	for _, id := range ch.ids {
		id.end(ch.session.EndError())
	}
}

// Create makes an id (rdma_create_id(3)) of a port space. A listener queues up to queue connection requests;
// for other ids it is 0.
func (ch *Channel) Create(ctx context.Context, space uint32, queue int) (*ID, error) {
	var resp abi.HandleMessage
	req := abi.CMCreateIDRequest{Channel: ch.handle, PS: space}
	if _, err := session.Call(ctx, ch.session, abi.CMCreateID, &req, &resp, -1, 0); err != nil {
		return nil, err
	}
	id := newID(ch, resp.Handle)
	if queue > 0 {
		id.requests = make(chan *Request, queue)
	}
	ch.add(id)
	return id, nil
}

func (ch *Channel) add(id *ID) {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	ch.ids[id.handle] = id
	if ch.ended {
		id.end(ch.session.EndError())
	}
}

// deliver passes one event to its id. A connection request whose listener is closed, or whose queue is full,
// is destroyed, which rejects it.
func (ch *Channel) deliver(ev *abi.CMEvent) {
	ch.mu.Lock()
	id := ch.ids[ev.ID]
	ch.mu.Unlock()
	if ev.Event == abi.CMConnectRequest {
		child := newID(ch, ev.Child)
		ch.add(child)
		if id == nil || !id.offer(&Request{ID: child, Event: *ev}) {
			go child.Destroy()
		}
		return
	}
	if id == nil {
		return // late: the id is destroyed
	}
	switch ev.Event {
	case abi.CMDisconnected:
		id.end(endedBy(ev.Status))
	case abi.CMDeviceRemoval:
		id.end(ch.session.EndError())
	case abi.CMTimewaitExit:
	default:
		select {
		case id.events <- *ev:
		default: // more events than a handshake has
		}
	}
}
