package cmid

import (
	"context"
	"net/netip"
	"time"

	"urdma/verbs/abi"
	"urdma/verbs/session"
)

// resolveLimit bounds address resolution if ctx has no deadline.
const resolveLimit = 5 * time.Second

// Resolve finds the device that reaches the peer (rdma_resolve_addr(3),
// rdma_resolve_route(3)).
func (id *ID) Resolve(ctx context.Context, from, to netip.AddrPort) (device uint32, err error) {
	if device, err = id.ResolveAddr(ctx, from, to); err != nil {
		return 0, err
	}
	req := abi.CMValueRequest{ID: id.handle, Value: patience(ctx)}
	if _, err := session.Call[abi.Header](ctx, id.channel.session, abi.CMResolveRoute, &req, nil, -1, 0); err != nil {
		return 0, err
	}
	_, err = id.Await(ctx, abi.CMRouteResolved)
	return device, err
}

// patience returns the time limit for urdmad's search in ms.
func patience(ctx context.Context) uint32 {
	limit := resolveLimit
	if end, ok := ctx.Deadline(); ok {
		limit = max(time.Until(end), time.Millisecond)
	}
	return uint32(min(limit, time.Hour).Milliseconds())
}

// ResolveAddr finds the device that reaches a peer or a multicast group (rdma_resolve_addr(3)), from one of
// our addresses; the zero address means any.
func (id *ID) ResolveAddr(ctx context.Context, from, to netip.AddrPort) (device uint32, err error) {
	dst, err := abi.AddrFrom(to)
	if err != nil {
		return 0, err
	}
	var src abi.Addr
	if from.Addr().IsValid() {
		if src, err = abi.AddrFrom(from); err != nil {
			return 0, err
		}
	}
	var bound abi.CMBound
	req := abi.CMResolveAddrRequest{ID: id.handle, TimeoutMS: patience(ctx), Src: src, Dst: dst}
	if _, err := session.Call(ctx, id.channel.session, abi.CMResolveAddr, &req, &bound, -1, 0); err != nil {
		return 0, err
	}
	ev, err := id.Await(ctx, abi.CMAddrResolved)
	if err != nil {
		return 0, err
	}
	return ev.Device, nil
}
