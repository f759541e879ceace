package verbs

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/netip"
	"syscall"

	"urdma/verbs/abi"
)

// GRHLen is the room in front of a datagram: a receive of a queue pair of type UD
// needs so many bytes more than the message, and ParseGRH reads what stands there.
const GRHLen = 40

// MulticastQPN is the queue pair number of a Destination that is a group.
const MulticastQPN = 0xffffff

// Destination is where a datagram goes. It does what an address handle, remote_qpn
// and remote_qkey do for C programs (ibv_create_ah(3), ibv_post_send(3)), and is a
// value: nothing has to be made or destroyed, and each SendWR may have another.
//
// Addr is an address of the family that the port's has, one of IPv4 also as the
// IPv4-mapped IPv6 address that GIDs are; one that is multicast is a group, and QPN
// MulticastQPN then. A GID that begins with ff is a group on every port. Whether somebody is there no error tells: a datagram that nobody takes is
// lost.
type Destination struct {
	Number
	// QKey must be the Q_Key of the queue pair that is to receive. One with the top
	// bit set stands for the Q_Key of the sending one.
	QKey uint32
}

func (d *Destination) valid() bool {
	_, ok := gidAddress(d.Addr)
	return ok
}

// gidAddress is the IP address that a GID is; false for none. Which IPv4 group the GID
// of a group stands for, on a port with such an address, urdmad knows.
func gidAddress(gid netip.Addr) (netip.Addr, bool) {
	gid = gid.WithZone("").Unmap()
	return gid, gid.IsValid() && !gid.IsUnspecified()
}

// write puts the destination into a slot, as urdma_abi.h has it there.
func (d *Destination) write(e *abi.SQE) {
	addr, _ := gidAddress(d.Addr)
	raw := addr.As16()
	e.RemoteAddr = uint64(d.QKey)<<32 | uint64(d.QPN)
	e.CompareAdd, e.Swap = binary.NativeEndian.Uint64(raw[:8]), binary.NativeEndian.Uint64(raw[8:])
}

// StartDatagrams has a queue pair of type UD receive what comes with the Q_Key, and
// send: ibv_modify_qp(3) to RTR and RTS. Q_Keys keep out what is not meant for a
// queue pair, and no attacker who sees them. Receives may be posted before; a
// datagram that finds none is lost. The error is EINVAL for a queue pair of another
// type or in a state other than INIT.
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

// AttachMcast has a queue pair of type UD receive what is sent to a group with its
// Q_Key, what it sends itself excepted (ibv_attach_mcast(3)). The group is as
// Destination has it. The error is EINVAL for another type or address, ENOMEM if
// the queue pair is attached to 64 groups.
func (q *QP) AttachMcast(group netip.Addr) error { return q.mcast(abi.AttachMcast, group) }

// DetachMcast undoes AttachMcast (ibv_detach_mcast(3)); EINVAL for a group that the
// queue pair is not attached to.
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

// GRH is what came in front of a datagram (struct ibv_grh), as RoCEv2 has it: an IPv6
// header, or 20 bytes of nothing and an IPv4 header.
type GRH struct {
	Src, Dst               netip.Addr // Dst is a group's for what was sent to one
	HopLimit, TrafficClass uint8      // or the IPv4 TTL and TOS
}

// ParseGRH reads the first GRHLen bytes of a receive. They are the program's own
// memory, which anybody with a right to it may have written: believe them as far as
// that. The error is EINVAL for fewer bytes, EPROTONOSUPPORT for another header.
func ParseGRH(b []byte) (GRH, error) {
	if len(b) < GRHLen {
		return GRH{}, fmt.Errorf("verbs: %d bytes of a global routing header, expected %d: %w", len(b), GRHLen, syscall.EINVAL)
	}
	if b[0]>>4 == 6 {
		return GRH{Src: netip.AddrFrom16([16]byte(b[8:24])), Dst: netip.AddrFrom16([16]byte(b[24:40])), HopLimit: b[7],
			TrafficClass: b[0]<<4 | b[1]>>4}, nil
	}
	const ipv4 = 20 // where an IPv4 header begins
	ip := b[ipv4:GRHLen]
	if ip[0] != 4<<4|5 {
		return GRH{}, fmt.Errorf("verbs: header that begins with 0x%02x in front of a datagram, expected IPv4's 0x45: %w",
			ip[0], syscall.EPROTONOSUPPORT)
	}
	return GRH{Src: netip.AddrFrom4([4]byte(ip[12:16])), Dst: netip.AddrFrom4([4]byte(ip[16:20])), HopLimit: ip[8],
		TrafficClass: ip[1]}, nil
}

// Sender is where an answer to a datagram goes (ibv_create_ah_from_wc(3)). b begins
// with the GRH of the receive that completed; a datagram doesn't bring its sender's
// Q_Key, so the caller names that. The errors are those of ParseGRH, and EINVAL for
// the completion of anything else.
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
