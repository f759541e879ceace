package verbs

import (
	"context"
	"fmt"
	"time"

	"urdma/verbs/abi"
)

// resolveTime bounds the search for the peer's link address where ctx doesn't.
const resolveTime = 5 * time.Second

// Dial connects to a listener at "host:port", an IPv4 address or a name of one.
// The error is a *RejectedError if the listener refused, and ErrUnreachable if
// nobody answered; ctx ends the waiting.
func (c *Client) Dial(ctx context.Context, address string, cfg ConnConfig) (*Conn, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	to, err := resolve(ctx, address)
	if err != nil {
		return nil, err
	}
	x, err := c.cm.create()
	if err != nil {
		return nil, err
	}
	conn, err := dial(ctx, x, to, &cfg)
	if err != nil {
		x.destroy()
		return nil, fmt.Errorf("verbs: dial %s: %w", address, err)
	}
	return conn, nil
}

func dial(ctx context.Context, x *id, to abi.Addr, cfg *ConnConfig) (*Conn, error) {
	if err := findRoute(ctx, x, to); err != nil {
		return nil, err
	}
	q, err := cfg.makeQP()
	if err != nil {
		return nil, err
	}
	req := abi.CMConnRequest{ID: x.handle, Param: cfg.param(q)}
	var resp abi.Header
	if _, err = call(x.c, abi.CMConnect, &req, &resp); err == nil {
		var ev abi.CMEvent
		if ev, err = x.expect(ctx, abi.CMEstablished); err == nil {
			return newConn(x, q, &ev, ev.Param.Private()), nil
		}
	}
	_ = q.Close() // the error that matters is the connection's
	return nil, err
}

func newConn(x *id, q *QP, ev *abi.CMEvent, private []byte) *Conn {
	return &Conn{QP: q, PrivateData: append([]byte(nil), private...), Local: addrPort(ev.Local), Peer: addrPort(ev.Peer), id: x}
}

// findRoute is rdma_resolve_addr and rdma_resolve_route.
func findRoute(ctx context.Context, x *id, to abi.Addr) error {
	limit := resolveTime
	if end, ok := ctx.Deadline(); ok {
		limit = min(limit, max(time.Until(end), time.Millisecond))
	}
	req := abi.CMResolveAddrRequest{ID: x.handle, TimeoutMS: uint32(limit.Milliseconds()), Dst: to}
	var bound abi.CMBound
	if _, err := call(x.c, abi.CMResolveAddr, &req, &bound); err != nil {
		return err
	}
	if _, err := x.expect(ctx, abi.CMAddrResolved); err != nil {
		return err
	}
	route := abi.CMValueRequest{ID: x.handle, Value: uint32(limit.Milliseconds())}
	var resp abi.Header
	if _, err := call(x.c, abi.CMResolveRoute, &route, &resp); err != nil {
		return err
	}
	_, err := x.expect(ctx, abi.CMRouteResolved)
	return err
}
