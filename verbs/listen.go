package verbs

import (
	"context"
	"net/netip"

	"urdma/verbs/abi"
)

// backlog is how many connection requests wait at a listener.
const backlog = 128

// Listener takes connection requests (rdma_listen(3)).
type Listener struct {
	id    *connID
	local netip.AddrPort
}

// Listen takes connection requests at "host:port" (rdma_bind_addr(3),
// rdma_listen(3)). No host means every port of urdmad, 127.0.0.1 included; port
// number 0 chooses a free one.
func (c *Client) Listen(address string) (*Listener, error) {
	at, err := lookUp(context.Background(), address)
	if err != nil {
		return nil, err
	}
	addr, err := abi.AddrFrom(at)
	if err != nil {
		return nil, err
	}
	id, err := c.createID(context.Background(), backlog)
	if err != nil {
		return nil, err
	}
	var bound abi.CMBound
	req := abi.CMBindRequest{ID: id.handle, Addr: addr}
	if _, err = call(c, abi.CMBind, &req, &bound, -1, 0); err == nil {
		_, err = call(c, abi.CMListen, &abi.CMValueRequest{ID: id.handle, Value: backlog}, &bound, -1, 0)
	}
	if err != nil {
		id.destroy()
		return nil, err
	}
	return &Listener{id: id, local: bound.Local.AddrPort()}, nil
}

// Addr is where the listener listens, with the port number chosen.
func (l *Listener) Addr() netip.AddrPort { return l.local }

// Next waits for a connection request. The caller answers it with Accept or
// Reject.
func (l *Listener) Next(ctx context.Context) (*Request, error) {
	select {
	case r := <-l.id.requests:
		return r, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-l.id.done:
		return nil, l.id.why
	}
}

// Accept waits for a connection request and accepts it.
func (l *Listener) Accept(ctx context.Context, options *ConnOptions) (*Conn, error) {
	r, err := l.Next(ctx)
	if err != nil {
		return nil, err
	}
	return r.Accept(ctx, options)
}

// Close stops listening and rejects the requests that wait. Connections stay.
func (l *Listener) Close() error {
	l.id.destroy()
	l.id.offering.Lock() // nothing is put in after this
	defer l.id.offering.Unlock()
	for {
		select {
		case r := <-l.id.requests:
			r.id.destroy()
		default:
			return nil
		}
	}
}

// Request is a connection request that waits for its answer
// (RDMA_CM_EVENT_CONNECT_REQUEST of rdma_get_cm_event(3)).
type Request struct {
	id      *connID
	device  uint32
	offered offered

	PrivateData []byte // what the peer gave to Dial
	Local       netip.AddrPort
	Remote      netip.AddrPort
}

func newRequest(id *connID, ev *abi.CMEvent) *Request {
	return &Request{id: id, device: ev.Device, Local: ev.Local.AddrPort(), Remote: ev.Peer.AddrPort(),
		PrivateData: append([]byte(nil), ev.Param.Private()...),
		offered:     offered{int(ev.Param.ResponderResources), int(ev.Param.InitiatorDepth)}}
}

// Accept accepts and returns when the peer has acknowledged it (rdma_accept(3)).
// options may be nil. A request can be answered once.
func (r *Request) Accept(ctx context.Context, options *ConnOptions) (*Conn, error) {
	conn, err := r.id.prepare(ctx, r.device, options)
	if err == nil {
		if _, err = conn.handshake(ctx, abi.CMAccept, r.offered); err != nil {
			undo(ctx, conn.release)
		}
	}
	if err != nil {
		undo(ctx, r.id.destroy)
		return nil, err
	}
	conn.private, conn.local, conn.remote = r.PrivateData, r.Local, r.Remote
	return conn, nil
}

// Reject refuses, with private data of at most MaxPrivateData bytes for the
// peer (rdma_reject(3)).
func (r *Request) Reject(private []byte) error {
	req := abi.CMConnRequest{ID: r.id.handle}
	if err := setPrivate(&req.Param, private); err != nil {
		return err
	}
	_, err := call[abi.Header](r.id.channel.client, abi.CMReject, &req, nil, -1, 0)
	r.id.destroy()
	return err
}
