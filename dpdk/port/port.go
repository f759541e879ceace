package port

import (
	"encoding/binary"
	"net/netip"
)

// EtherHeaderLen is the length of a frame before the IP packet: two addresses and the EtherType. A port's
// buffers hold Info().MTU plus this many bytes.
const EtherHeaderLen = 14

// Flags are the results of a port's checks of a received frame, and options for sending a datagram. On
// packets from Alloc they are zero.
type Flags uint32

const (
	// RxIPv4Bad: the port verified the IPv4 header checksum and found it wrong.
	RxIPv4Bad Flags = 1 << iota
	// RxUDPBad: the port verified the UDP checksum and found it wrong.
	RxUDPBad
	// RxIPv4Good: the port verified the IPv4 header checksum and found it right.
	RxIPv4Good
	// RxUDPGood: the port verified the UDP checksum and found it right.
	RxUDPGood
	// TxWhole: the datagram must not be fragmented, whatever the kernel knows about the path. Only a port of
	// datagrams uses this flag and the next two.
	TxWhole
	// TxFragment: the datagram is longer than the path's MTU, and routers may fragment it.
	TxFragment
	// TxAlone: the datagram must not be sent together with others.
	TxAlone
	// TxOut: the frame leaves by this port, whatever its destination. Only package steer uses this flag.
	TxOut
	// RxInside: the packet was sent by another worker of this urdmad, and was on no wire.
	RxInside
	// RxAgain: another worker of this urdmad has the packet, too, and shows it to captures.
	RxAgain
)

// Has reports whether every flag of f is set.
func (g Flags) Has(f Flags) bool { return g&f == f }

// Packet is an Ethernet frame in a buffer of the port, without preamble and frame check sequence.
type Packet struct {
	// Data is the frame. After Rx it is exactly the received frame. After Alloc it is the whole buffer,
	// Info().MTU+EtherHeaderLen bytes with undefined contents, which the caller reslices (Data[:n], never
	// from the front) to the length to be sent.
	Data []byte
	// Flags of a received frame, or for sending a datagram.
	Flags Flags
	// Group is the number of the multicast group to which a datagram was sent (Grouper); 0: it was sent to
	// the port's address.
	Group uint16
	// Class is a datagram's traffic class: received, if the port was opened with this option; or to be sent,
	// where 0 stands for the socket's own.
	Class uint8
	// Peer is the other end's socket, on a port of datagrams: after Rx the sender; before Tx the caller sets
	// the destination. A port of frames does not use it.
	Peer Peer
	// Ref is for the port only, and below 1<<62: an mbuf's address, a ring slot. The caller keeps it together
	// with Data and never interprets it.
	Ref uintptr
}

// Peer is the address of a UDP socket: an IPv6 address, or an IPv4 address mapped into IPv6 (RFC 4291 section
// 2.5.5.2), and a port number. It has no pointer, so packets are cheap to copy, and no array, so that Go
// copies it in registers: a copy through the stack would wait for the payload written before it.
type Peer struct {
	High, Low uint64 // the halves of the IP address
	Port      uint16
}

// PeerAt returns the socket with an IP address, in wire order, and a port number.
func PeerAt(ip [16]byte, number uint16) Peer {
	return Peer{binary.BigEndian.Uint64(ip[:]), binary.BigEndian.Uint64(ip[8:]), number}
}

// PeerOf returns the socket at a.
func PeerOf(a netip.AddrPort) Peer { return PeerAt(a.Addr().As16(), a.Port()) }

// IP returns the socket's IP address in wire order.
func (p *Peer) IP() (ip [16]byte) {
	binary.BigEndian.PutUint64(ip[:], p.High)
	binary.BigEndian.PutUint64(ip[8:], p.Low)
	return ip
}

// Addr returns the socket's IP address.
func (p *Peer) Addr() netip.Addr { return netip.AddrFrom16(p.IP()).Unmap() }

// Info describes a port. It does not change while the port is open.
type Info struct {
	// Name is the port's name in the configuration, Driver the driver's name ("memif", "net_af_packet", …).
	Name, Driver string
	// Interface is the name of the kernel's network interface that the port uses, as of opening; empty if
	// there is none.
	Interface string
	// MAC is the port's Ethernet address, in wire order.
	MAC [6]byte
	// MTU is the largest IP packet, header included, in bytes. The largest
	// frame is EtherHeaderLen longer.
	MTU int
	// TxUDPChecksum: the sender leaves the UDP checksum 0. Either the port fills it in, or the wire needs
	// none. The caller always computes the IPv4 header checksum.
	TxUDPChecksum bool
	// TxUDP6Checksum: the port fills in the UDP checksum of IPv6 packets without extension headers, which the
	// sender leaves 0. IPv6 requires the checksum, even on a wire that needs none (RFC 8200 section 8.1).
	TxUDP6Checksum bool
	// SharedRx: another process can change received bytes at any time. Headers
	// must be copied out before they are checked.
	SharedRx bool
	// Datagrams: the port is a UDP socket of the kernel. A packet's Data is a UDP payload instead of a frame,
	// at most the MTU minus IP and UDP headers (IPv4: 28 bytes); Packet.Peer is the other end; the kernel
	// handles checksums.
	Datagrams bool
	// Batches: consecutive datagrams of one length to one peer are sent together, up to BatchPackets and
	// BatchBytes, as long as the kernel accepts that.
	Batches bool
	// FragmentFrom is the minimum length at which the kernel fragments datagrams with TxFragment, for IPv6,
	// whose datagrams are not fragmented if they fit the port's own link; Alloc's buffers have this capacity.
	// 0: datagrams of any length may be fragmented.
	FragmentFrom int
	// ReceiveWindow is how many packets of MTU size the port queues until Rx takes them, if that limits how
	// much peers may be allowed to send; 0: only the caller's own limits apply.
	ReceiveWindow int
	// Wire is false for the loopback driver: Rx never returns a frame, and frames given to Tx are lost.
	Wire bool
	// Siblings: packets from and to other workers of this urdmad pass through the port, too.
	Siblings bool
}

const (
	// BatchPackets is how many datagrams every kernel since 4.18 splits from one send (UDP_SEGMENT), and
	// receivers join again.
	BatchPackets = 64
	// BatchBytes is the maximum total length of a batch: the longest UDP payload.
	BatchBytes = 65507
)

// Offloader is a Port that can describe which offloads of the kernel it uses, for people to read; they may
// change while it is open.
type Offloader interface{ Offloads() string }

// Grouper is a port of datagrams that can receive from multicast groups, on each queue that joins them.
type Grouper interface {
	// Join makes a queue's Rx return datagrams that others send to a group, with the group's number, from 1.
	// Like Leave it must be called by the caller of Rx.
	Join(queue int, group netip.Addr) (number uint16, err error)
	// Leave undoes Join. Packets that Rx has already returned stay valid.
	Leave(queue int, number uint16)
}

// Port is a connection to a network. Frames pass through its queues; see the package comment for ownership,
// threads and behaviour while the link is down.
type Port interface {
	// Info describes the port; it does not change while the port is open.
	Info() Info

	// Queues returns the number of queues, at least 1, and Queue returns one of them, 0 to Queues()-1, the
	// same at each call. Both are constant while the port is open.
	Queues() int
	Queue(i int) Queue

	// Link reports whether frames can pass now.
	Link() bool

	// Watch makes the port call f with the new state at each change of Link until Close, in the order of the
	// changes, from any goroutine. f must not block, nor call Watch or Close.
	Watch(f func(up bool))

	// Stats returns the counters since open, summed over the queues.
	Stats() Stats

	// Close releases everything. Closing twice is harmless.
	Close() error
}
