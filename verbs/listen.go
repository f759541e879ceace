package verbs

import (
	"context"
	"fmt"
	"net/netip"
	"sync"

	"urdma/verbs/abi"
)

// Listener takes connection requests.
type Listener struct {
	id *id
	// Addr is where it listens, with the port number chosen.
	Addr netip.AddrPort
}

// Listen listens at "host:port", an address of one of urdmad's ports; without a
// host at all of them, and on port 0 at a free one. backlog is how many requests
// may wait for Accept and its answer, 0 for urdmad's default.
func (c *Client) Listen(address string, backlog int) (*Listener, error) {
	at, err := resolve(context.Background(), address)
	if err != nil {
		return nil, err
	}
	x, err := c.cm.create()
	if err != nil {
		return nil, err
	}
	var bound abi.CMBound
	bind := abi.CMBindRequest{ID: x.handle, Addr: at}
	if _, err = call(c, abi.CMBind, &bind, &bound); err == nil {
		listen := abi.CMValueRequest{ID: x.handle, Value: uint32(max(backlog, 0))}
		_, err = call(c, abi.CMListen, &listen, &bound)
	}
	if err != nil {
		x.destroy()
		return nil, fmt.Errorf("verbs: listen at %s: %w", address, err)
	}
	return &Listener{id: x, Addr: addrPort(bound.Local)}, nil
}

// Request is a connection request that waits for its answer: Accept or Reject.
type Request struct {
	// PrivateData is what the peer sent along.
	PrivateData []byte
	Local, Peer netip.AddrPort
	// Reads is how many RDMA Reads the peer serves at once.
	Reads int

	id       *id
	answered sync.Once
}

// Accept waits for the next connection request. After Close it returns
// ErrClosed.
func (l *Listener) Accept(ctx context.Context) (*Request, error) {
	ev, err := l.id.expect(ctx, abi.CMConnectRequest)
	if err != nil {
		return nil, err
	}
	return &Request{PrivateData: append([]byte(nil), ev.Param.Private()...), Local: addrPort(ev.Local), Peer: addrPort(ev.Peer),
		Reads: int(ev.Param.InitiatorDepth), id: l.id.c.cm.child(ev.Child)}, nil
}

// Close stops listening and rejects the requests that wait. Connections stay.
func (l *Listener) Close() error {
	l.id.destroy()
	for {
		ev, ok := l.id.take()
		if !ok {
			return nil
		}
		if ev.Event == abi.CMConnectRequest {
			if child := l.id.c.cm.child(ev.Child); child != nil {
				child.destroy()
			}
		}
	}
}

// Accept makes the connection and waits until the peer has acknowledged it.
func (r *Request) Accept(ctx context.Context, cfg ConnConfig) (conn *Conn, err error) {
	err = errAnswered
	r.answered.Do(func() { conn, err = r.accept(ctx, &cfg) })
	return conn, err
}

var errAnswered = fmt.Errorf("%w: the connection request was answered before", ErrRequest)

func (r *Request) accept(ctx context.Context, cfg *ConnConfig) (*Conn, error) {
	conn, err := r.connect(ctx, cfg)
	if err != nil {
		r.id.destroy() // rejects it, if it is not accepted
		return nil, fmt.Errorf("verbs: accept %v: %w", r.Peer, err)
	}
	return conn, nil
}

func (r *Request) connect(ctx context.Context, cfg *ConnConfig) (*Conn, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	q, err := cfg.makeQP()
	if err != nil {
		return nil, err
	}
	req := abi.CMConnRequest{ID: r.id.handle, Param: cfg.param(q)}
	var resp abi.Header
	if _, err = call(r.id.c, abi.CMAccept, &req, &resp); err == nil {
		var ev abi.CMEvent
		if ev, err = r.id.expect(ctx, abi.CMEstablished); err == nil {
			return newConn(r.id, q, &ev, r.PrivateData), nil
		}
	}
	_ = q.Close() // the error that matters is the connection's
	return nil, err
}

// Reject refuses the request with private data, at most MaxPrivateData bytes.
func (r *Request) Reject(private []byte) error {
	if len(private) > MaxPrivateData {
		return fmt.Errorf("%w: %d bytes of private data, at most %d", ErrRequest, len(private), MaxPrivateData)
	}
	err := errAnswered
	r.answered.Do(func() {
		req := abi.CMConnRequest{ID: r.id.handle}
		req.Param.SetPrivate(private)
		var resp abi.Header
		if _, err = call(r.id.c, abi.CMReject, &req, &resp); err != nil {
			err = fmt.Errorf("verbs: reject: %w", err)
		}
		r.id.destroy()
	})
	return err
}
