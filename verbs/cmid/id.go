package cmid

import (
	"context"
	"sync"
	"sync/atomic"

	"urdma/verbs/abi"
	"urdma/verbs/session"
)

// ID is an rdma_cm id (rdma_create_id(3)).
type ID struct {
	channel  *Channel
	handle   uint32
	events   chan abi.CMEvent // events of the handshake
	requests chan *Request    // connection requests, if the id listens
	offering sync.Mutex       // held while a request is queued, and while the listener is closed
	onEnd    atomic.Pointer[func()]
	done     chan struct{} // closed when the connection, or urdmad, has ended
	once     sync.Once
	why      error // reason of the end; set before done is closed
	gone     sync.Once
}

// A handshake has at most four events; after it the only event is the connection's end.
const handshakeEvents = 8

func newID(ch *Channel, handle uint32) *ID {
	return &ID{channel: ch, handle: handle, events: make(chan abi.CMEvent, handshakeEvents), done: make(chan struct{})}
}

// Handle returns urdmad's handle of the id.
func (id *ID) Handle() uint32 { return id.handle }

// Done is closed when the connection or urdmad has ended, or the id was destroyed.
func (id *ID) Done() <-chan struct{} { return id.done }

// Why returns the reason of the end, once Done is closed.
func (id *ID) Why() error { return id.why }

// OnEnd sets a function that is called when the connection ends, before Done is closed.
func (id *ID) OnEnd(f func()) { id.onEnd.Store(&f) }

// end records that the connection has ended.
func (id *ID) end(why error) {
	id.once.Do(func() {
		id.why = why
		if f := id.onEnd.Load(); f != nil {
			(*f)()
		}
		close(id.done)
	})
}

// Request makes a request that has only the id as parameter and a response without data.
func (id *ID) Request(t abi.Type) error { return id.channel.session.CallHandle(t, id.handle) }

// Connect makes a request that carries connection parameters.
func (id *ID) Connect(ctx context.Context, t abi.Type, param *abi.CMParam) error {
	req := abi.CMConnRequest{ID: id.handle, Param: *param}
	_, err := session.Call[abi.Header](ctx, id.channel.session, t, &req, nil, -1, 0)
	return err
}

// optionAckTimeout is RDMA_OPTION_ID_ACK_TIMEOUT, of level RDMA_OPTION_ID (0).
const optionAckTimeout = 3

// SetAckTimeout sets, before the handshake, how long one transmission waits for its acknowledgement: 4.096 µs
// << n, n up to 31 (rdma_set_option(3)); EINVAL beyond. 0 leaves the choice to urdmad.
func (id *ID) SetAckTimeout(ctx context.Context, n int) error {
	if n == 0 {
		return nil
	}
	req := abi.CMSetOptionRequest{ID: id.handle, OptName: optionAckTimeout, Value: uint32(n)}
	_, err := session.Call[abi.Header](ctx, id.channel.session, abi.CMSetOption, &req, nil, -1, 0)
	return err
}

// Await waits for one event of the handshake; any other event means failure.
func (id *ID) Await(ctx context.Context, want uint32) (*abi.CMEvent, error) {
	select {
	case ev := <-id.events:
		return expected(&ev, want)
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-id.done:
	}
	select {
	case ev := <-id.events: // the event came before the end
		return expected(&ev, want)
	default:
		return nil, id.why
	}
}

func expected(ev *abi.CMEvent, want uint32) (*abi.CMEvent, error) {
	if ev.Event == want && ev.Status == 0 {
		return ev, nil
	}
	return nil, handshakeError(ev)
}

// Destroy destroys the id (rdma_destroy_id(3)). An unanswered connection request is thereby rejected.
func (id *ID) Destroy() {
	id.gone.Do(func() {
		_ = id.Request(abi.CMDestroyID) // fails only if urdmad has ended, and the id with it
		id.channel.mu.Lock()
		delete(id.channel.ids, id.handle)
		id.channel.mu.Unlock()
		id.end(session.ErrClosed)
	})
}
