package verbs

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"urdma/verbs/abi"
	"urdma/verbs/session"
)

// UDPQKey is the Q_Key of all queue pairs that find each other by rdma_cm's port space
// for datagrams (RDMA_UDP_QKEY).
const UDPQKey = 0x01234567

// ListenDatagrams takes requests of those who ask which queue pair of type UD stands
// behind "host:port" (RDMA_PS_UDP of rdma_create_id(3)), as Dial does with that type.
// A request is answered as one for a connection is; Accept makes a queue pair of type
// UD for it. Host and port number are as Listen has them.
func (c *Client) ListenDatagrams(address string) (*Listener, error) {
	return c.listen(address, UD, DefaultBacklog)
}

// Peer is where the datagrams of a connection's queue pair of type UD go: to the one
// that the other side named, or to the group that was joined. Send and its kin send
// there, and PostSend does with SendWR.To. There is no connection besides: nothing
// tells that the peer has gone, others may send to our queue pair, and it to others.
func (conn *Conn) Peer() Destination { return conn.peer }

// JoinMulticast makes a queue pair of type UD that receives what is sent to a group,
// and whose Peer is the group (rdma_join_multicast(3)). The group is an IP address,
// which says by its family and its zone which port it is. All members have the Q_Key
// UDPQKey. Nobody has to be there.
func (c *Client) JoinMulticast(ctx context.Context, group string, options *ConnOptions) (*Conn, error) {
	to, err := c.lookUp(ctx, net.JoinHostPort(group, "0"))
	if err != nil {
		return nil, err
	}
	if !to.Addr().IsMulticast() {
		return nil, fmt.Errorf("verbs: %s is no group: %w", group, syscall.EINVAL)
	}
	id, err := c.createID(ctx, UD, 0)
	if err != nil {
		return nil, err
	}
	device, err := id.ResolveAddr(ctx, netip.AddrPort{}, to)
	if err != nil {
		session.Undo(ctx, id.Destroy)
		return nil, err
	}
	conn, err := c.prepare(ctx, id, device, options, UD)
	if err != nil {
		session.Undo(ctx, id.Destroy)
		return nil, err
	}
	if err := conn.join(to.Addr()); err != nil {
		session.Undo(ctx, func() { conn.release(); id.Destroy() })
		return nil, err
	}
	return conn, nil
}

func (conn *Conn) join(group netip.Addr) error {
	if err := conn.AttachMcast(group); err != nil {
		return err
	}
	conn.group = group
	conn.peer = Destination{Number{group.WithZone(""), MulticastQPN}, UDPQKey}
	conn.remote = netip.AddrPortFrom(group, 0)
	conn.local = netip.AddrPortFrom(conn.ctx.device.Prefix.Addr(), 0)
	return nil
}

// meets notes the queue pair that the other side named, at an address: 127.0.0.1 and
// its kin are our own port.
func (conn *Conn) meets(at abi.Addr, qpn, qkey uint32) {
	addr := at.AddrPort().Addr()
	if addr.IsLoopback() {
		addr = conn.ctx.device.Prefix.Addr()
	}
	conn.peer = Destination{Number{addr.WithZone(""), qpn}, qkey}
}

// serves reports whether queue pairs of a type can be behind requests: those of type
// UD for datagrams, and others that rdma_cm connects otherwise.
func (t QPType) serves(datagrams bool) bool {
	if datagrams {
		return t == UD
	}
	return t == RC || t == XRCSend || t == XRCRecv
}

// space is rdma_cm's port space for a type of queue pairs.
func (t QPType) space() uint32 {
	if t == UD {
		return abi.PSUDP
	}
	return abi.PSTCP
}
