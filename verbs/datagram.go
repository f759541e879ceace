package verbs

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/netip"
	"syscall"

	"urdma/verbs/abi"
)

// GRHLen is the number of bytes in front of a datagram: a receive of a queue pair of type UD must be longer
// than the message by this much. ParseGRH reads these bytes.
const GRHLen = 40

// MulticastQPN is the queue pair number of a Destination that is a multicast group.
const MulticastQPN = 0xffffff

// Destination is the destination of a datagram. It replaces the address handle, remote_qpn and remote_qkey of
// C programs (ibv_create_ah(3), ibv_post_send(3)). It is a value: nothing has to be created or destroyed, and
// each SendWR may have another one.
//
// Addr is an address of the port's family; an IPv4 address may also be IPv4-mapped, as in GIDs. A multicast
// address denotes a group and requires QPN MulticastQPN. A GID that begins with ff is a group on every port.
// There is no error if the destination does not exist: the datagram is lost.
type Destination struct {
	Number
	// QKey must be the Q_Key of the receiving queue pair. If the top bit is set, the sending queue pair's
	// Q_Key is used.
	QKey uint32
}

func (d *Destination) valid() bool {
	_, ok := gidAddress(d.Addr)
	return ok
}

// gidAddress returns the IP address in a GID; false if there is none. urdmad knows which IPv4 group a group's
// GID denotes on an IPv4 port.
func gidAddress(gid netip.Addr) (netip.Addr, bool) {
	gid = gid.WithZone("").Unmap()
	return gid, gid.IsValid() && !gid.IsUnspecified()
}

// write puts the destination into a slot, as described in urdma_abi.h.
func (d *Destination) write(e *abi.SQE) {
	addr, _ := gidAddress(d.Addr)
	raw := addr.As16()
	e.RemoteAddr = uint64(d.QKey)<<32 | uint64(d.QPN)
	e.CompareAdd, e.Swap = binary.NativeEndian.Uint64(raw[:8]), binary.NativeEndian.Uint64(raw[8:])
}

// StartDatagrams lets a queue pair of type UD receive datagrams with this Q_Key, and send: ibv_modify_qp(3)
// to RTR and RTS. Q_Keys keep out stray datagrams; they do not protect against attackers who can read them.
// Receives may be posted before; a datagram without a receive is lost. The error is EINVAL for a queue pair
// of another type or in a state other than INIT.
func (q *QP) StartDatagrams(qkey uint32) error { return q.startDatagrams(context.Background(), qkey) }

func (q *QP) startDatagrams(ctx context.Context, qkey uint32) error {
	if q.kind != UD {
		return fmt.Errorf("verbs: datagrams of a queue pair of type %v, expected UD: %w", q.kind, syscall.EINVAL)
	}
	attr := QPAttr{QPState: abi.QPSRTR, QKey: qkey}
	if err := q.modify(ctx, &attr, abi.QPMaskState|abi.QPMaskQKey); err != nil {
		return err
	}
	attr = QPAttr{QPState: abi.QPSRTS}
	return q.modify(ctx, &attr, abi.QPMaskState|abi.QPMaskSQPSN)
}

// AttachMcast lets a queue pair of type UD receive datagrams sent to a multicast group with its Q_Key, except
// its own (ibv_attach_mcast(3)). The group is given as in Destination. The error is EINVAL for another type
// or address, ENOMEM if the queue pair is attached to 64 groups.
func (q *QP) AttachMcast(group netip.Addr) error { return q.mcast(abi.AttachMcast, group) }

// DetachMcast undoes AttachMcast (ibv_detach_mcast(3)); EINVAL if the queue pair is not attached to the
// group.
func (q *QP) DetachMcast(group netip.Addr) error { return q.mcast(abi.DetachMcast, group) }

func (q *QP) mcast(t abi.Type, group netip.Addr) error {
	addr, ok := gidAddress(group)
	if !ok || !addr.IsMulticast() {
		return fmt.Errorf("verbs: %v is no group: %w", group, syscall.EINVAL)
	}
	to, err := abi.AddrFrom(netip.AddrPortFrom(addr, 0))
	if err != nil {
		return err
	}
	req := abi.McastRequest{QP: q.handle, Group: to}
	_, err = call[abi.Header](q.ctx.client, t, &req, nil, -1, 0)
	return err
}

// GRH is the header in front of a datagram (struct ibv_grh) in RoCEv2's layout: an IPv6 header, or 20 unused
// bytes and an IPv4 header.
type GRH struct {
	Src, Dst               netip.Addr // Dst is the group's address if the datagram was sent to a group
	HopLimit, TrafficClass uint8      // or the IPv4 TTL and TOS
}

// ParseGRH reads the first GRHLen bytes of a receive. They are in the program's own memory, where everybody
// with access to the region may have written, so they are only as trustworthy as those. The error is EINVAL
// for fewer bytes, EPROTONOSUPPORT for another header.
func ParseGRH(b []byte) (GRH, error) {
	if len(b) < GRHLen {
		return GRH{}, fmt.Errorf("verbs: %d bytes of a global routing header, expected %d: %w", len(b), GRHLen,
			syscall.EINVAL)
	}
	if b[0]>>4 == 6 {
		return GRH{Src: netip.AddrFrom16([16]byte(b[8:24])), Dst: netip.AddrFrom16([16]byte(b[24:40])), HopLimit: b[7],
			TrafficClass: b[0]<<4 | b[1]>>4}, nil
	}
	const ipv4 = 20 // offset of the IPv4 header
	ip := b[ipv4:GRHLen]
	if ip[0] != 4<<4|5 {
		return GRH{}, fmt.Errorf("verbs: header that begins with 0x%02x in front of a datagram, expected IPv4's 0x45: %w",
			ip[0], syscall.EPROTONOSUPPORT)
	}
	return GRH{Src: netip.AddrFrom4([4]byte(ip[12:16])), Dst: netip.AddrFrom4([4]byte(ip[16:20])), HopLimit: ip[8],
		TrafficClass: ip[1]}, nil
}

// Sender returns the destination for a reply to a datagram (ibv_create_ah_from_wc(3)). b begins with the GRH
// of the receive that completed. A datagram does not contain its sender's Q_Key, so the caller must know it.
// The errors are ParseGRH's, and EINVAL if the completion is not a datagram's.
func (c *Completion) Sender(b []byte, qkey uint32) (Destination, error) {
	if c.Status != StatusSuccess || !c.HasGRH {
		return Destination{}, fmt.Errorf("verbs: sender of what is no datagram (%v: %v): %w", c.Op, c.Status, syscall.EINVAL)
	}
	h, err := ParseGRH(b)
	if err != nil {
		return Destination{}, err
	}
	return Destination{Number{h.Src, c.SrcQPN}, qkey}, nil
}
