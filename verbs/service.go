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

// UDPQKey is the Q_Key of all queue pairs that find each other through rdma_cm's port space for datagrams
// (RDMA_UDP_QKEY).
const UDPQKey = 0x01234567

// ListenDatagrams accepts requests for the queue pair of type UD at "host:port" (RDMA_PS_UDP of
// rdma_create_id(3)), which peers make with Dial and type UD. A request is answered like a connection
// request; Accept makes a queue pair of type UD for it. Host and port number are as for Listen.
func (c *Client) ListenDatagrams(address string) (*Listener, error) {
	return c.listen(address, UD, DefaultBacklog)
}

// Peer returns the destination for datagrams of the connection's queue pair of type UD: the queue pair that
// the other side named, or the group that was joined. Send and SendBytes send there, and PostSend does with
// SendWR.To. There is no connection: the end of the peer is not reported, others may send to our queue pair,
// and ours may send to others.
func (conn *Conn) Peer() Destination { return conn.peer }

// JoinMulticast makes a queue pair of type UD that receives datagrams sent to a multicast group, and whose
// Peer is the group (rdma_join_multicast(3)). The group is an IP address; its family and zone determine the
// port. All members use the Q_Key UDPQKey. The group may be empty.
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

// setPeer records the other side's queue pair and its address; a loopback address means our own port.
func (conn *Conn) setPeer(at abi.Addr, qpn, qkey uint32) {
	addr := at.AddrPort().Addr()
	if addr.IsLoopback() {
		addr = conn.ctx.device.Prefix.Addr()
	}
	conn.peer = Destination{Number{addr.WithZone(""), qpn}, qkey}
}

// serves reports whether a queue pair of this type can be the answer to the listener's requests: type UD for
// datagrams, the other types that rdma_cm supports for connections.
func (t QPType) serves(datagrams bool) bool {
	if datagrams {
		return t == UD
	}
	return t == RC || t == XRCSend || t == XRCRecv
}

// space returns rdma_cm's port space for a type of queue pairs.
func (t QPType) space() uint32 {
	if t == UD {
		return abi.PSUDP
	}
	return abi.PSTCP
}
