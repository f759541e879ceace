package verbs

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"syscall"
	"time"

	"urdma/verbs/abi"
)

// resolveLimit bounds the search for the peer where ctx does not.
const resolveLimit = 5 * time.Second

// Dial connects to "host:port" and returns when the peer has accepted
// (rdma_resolve_addr(3), rdma_resolve_route(3), rdma_connect(3)). Host is an
// IPv4 address or a name of one. A peer that does not want it is a
// *RejectedError. options may be nil.
func (c *Client) Dial(ctx context.Context, address string, options *ConnOptions) (*Conn, error) {
	to, err := lookUp(ctx, address)
	if err != nil {
		return nil, err
	}
	id, err := c.createID(ctx, 0)
	if err != nil {
		return nil, err
	}
	conn, err := id.dial(ctx, to, options)
	if err != nil {
		undo(ctx, id.destroy)
		return nil, fmt.Errorf("dialing %s: %w", address, err)
	}
	return conn, nil
}

func (id *connID) dial(ctx context.Context, to netip.AddrPort, options *ConnOptions) (*Conn, error) {
	device, err := id.resolve(ctx, to)
	if err != nil {
		return nil, err
	}
	conn, err := id.prepare(ctx, device, options)
	if err != nil {
		return nil, err
	}
	ev, err := conn.handshake(ctx, abi.CMConnect, offered{255, 255})
	if err != nil {
		undo(ctx, conn.release)
		return nil, err
	}
	conn.private = append([]byte(nil), ev.Param.Private()...)
	conn.local, conn.remote = ev.Local.AddrPort(), ev.Peer.AddrPort()
	return conn, nil
}

// resolve finds the device that reaches the peer.
func (id *connID) resolve(ctx context.Context, to netip.AddrPort) (device uint32, err error) {
	c := id.channel.client
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
	if _, err := callContext(ctx, c, abi.CMResolveAddr, &req, &bound, -1, 0); err != nil {
		return 0, err
	}
	ev, err := id.await(ctx, abi.CMAddrResolved)
	if err != nil {
		return 0, err
	}
	if _, err := callContext[abi.Header](ctx, c, abi.CMResolveRoute, &abi.CMValueRequest{ID: id.handle, Value: ms}, nil, -1, 0); err != nil {
		return 0, err
	}
	if _, err := id.await(ctx, abi.CMRouteResolved); err != nil {
		return 0, err
	}
	return ev.Device, nil
}

// lookUp reads an address. An empty host is the wildcard.
func lookUp(ctx context.Context, address string) (netip.AddrPort, error) {
	host, service, err := net.SplitHostPort(address)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("verbs: %w", err)
	}
	port, err := strconv.ParseUint(service, 10, 16)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("verbs: port %q: expected a number up to 65535", service)
	}
	if host == "" {
		return netip.AddrPortFrom(netip.IPv4Unspecified(), uint16(port)), nil
	}
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip4", host)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("verbs: %w", err)
	}
	for _, a := range found {
		if a = a.Unmap(); a.Is4() {
			return netip.AddrPortFrom(a, uint16(port)), nil
		}
	}
	return netip.AddrPort{}, fmt.Errorf("verbs: %s has no IPv4 address: %w", host, syscall.EAFNOSUPPORT)
}
