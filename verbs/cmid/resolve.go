package cmid

import (
	"context"
	"net/netip"
	"time"

	"urdma/verbs/abi"
	"urdma/verbs/session"
)

// resolveLimit bounds the search for the peer where ctx does not.
const resolveLimit = 5 * time.Second

// Resolve finds the device that reaches the peer (rdma_resolve_addr(3),
// rdma_resolve_route(3)).
func (id *ID) Resolve(ctx context.Context, to netip.AddrPort) (device uint32, err error) {
	s := id.channel.session
	limit := resolveLimit
	if end, ok := ctx.Deadline(); ok {
		limit = max(time.Until(end), time.Millisecond)
	}
	ms := uint32(min(limit, time.Hour).Milliseconds())
	dst, err := abi.AddrFrom(to)
	if err != nil {
		return 0, err
	}
	var bound abi.CMBound
	req := abi.CMResolveAddrRequest{ID: id.handle, TimeoutMS: ms, Dst: dst}
	if _, err := session.Call(ctx, s, abi.CMResolveAddr, &req, &bound, -1, 0); err != nil {
		return 0, err
	}
	ev, err := id.Await(ctx, abi.CMAddrResolved)
	if err != nil {
		return 0, err
	}
	if _, err := session.Call[abi.Header](ctx, s, abi.CMResolveRoute, &abi.CMValueRequest{ID: id.handle, Value: ms}, nil, -1, 0); err != nil {
		return 0, err
	}
	if _, err := id.Await(ctx, abi.CMRouteResolved); err != nil {
		return 0, err
	}
	return ev.Device, nil
}
