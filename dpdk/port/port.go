package port

import (
	"encoding/binary"
	"net/netip"
)

// EtherHeaderLen is what a frame carries before the IP packet: two addresses
// and the EtherType. A port's buffers hold Info().MTU plus this many bytes.
const EtherHeaderLen = 14

// Flags say what the port found out about a received frame, and how a datagram is
// to be sent. On packets from Alloc they are zero.
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
	// TxWhole: nobody may fragment the datagram, whatever the kernel knows of the
	// path. Only a port of datagrams looks at this and the
	// next two.
	TxWhole
	// TxFragment: the path takes less than the datagram, which routers may
	// fragment.
	TxFragment
	// TxAlone: the datagram must not leave in one send with others.
	TxAlone
	// RxInside: another worker of this urdmad has sent the packet, which was on no wire.
	RxInside
	// RxAgain: another worker of this urdmad has the packet, too, and shows it to captures.
	RxAgain
)

// Has reports whether every flag of f is set.
func (g Flags) Has(f Flags) bool { return g&f == f }

// Packet is one Ethernet frame in a buffer of the port: no preamble, no frame
// check sequence.
type Packet struct {
	// Data is the frame. After Rx it is exactly the frame received; after Alloc
	// it is the whole room, Info().MTU+EtherHeaderLen bytes, with undefined
	// contents, and the caller reslices it (Data[:n], never from the front) to
	// the length it wants sent.
	Data []byte
	// Flags of a received frame, or how a datagram is to be sent.
	Flags Flags
	// Group is the number of the group that a datagram was sent to (Grouper); 0: to the
	// port's address.
	Group uint16
	// Class is the traffic class of a datagram: received, if the port was opened to see it,
	// or to be sent; then 0 stands for the socket's own.
	Class uint8
	// Peer is the other end's socket, on a port of datagrams: of a packet from Rx
	// the sender's; before Tx the caller sets it. On a port of frames it is
	// neither set nor looked at.
	Peer Peer
	// Ref is the port's own, below 1<<62: an mbuf's address, a ring slot. The caller keeps
	// it together with Data and never looks at it.
	Ref uintptr
}

// Peer is the address of a UDP socket: an IPv6 address, or an IPv4 address mapped
// into one (RFC 4291 section 2.5.5.2), and a port number. It has no pointer, so
// packets can be copied freely, and no array, so that Go copies it by way of registers:
// a copy by way of the stack waits for the payload that was written before it.
type Peer struct {
	High, Low uint64 // the halves of the IP address
	Port      uint16
}

// PeerAt is the socket with an IP address, in wire order, and a port number.
func PeerAt(ip [16]byte, number uint16) Peer {
	return Peer{binary.BigEndian.Uint64(ip[:]), binary.BigEndian.Uint64(ip[8:]), number}
}

// PeerOf is the socket at a.
func PeerOf(a netip.AddrPort) Peer { return PeerAt(a.Addr().As16(), a.Port()) }

// IP is the socket's IP address in wire order.
func (p *Peer) IP() (ip [16]byte) {
	binary.BigEndian.PutUint64(ip[:], p.High)
	binary.BigEndian.PutUint64(ip[8:], p.Low)
	return ip
}

// Addr is the socket's IP address.
func (p *Peer) Addr() netip.Addr { return netip.AddrFrom16(p.IP()).Unmap() }

// Info describes a port. All of it is fixed from open to close.
type Info struct {
	// Name is what the configuration called the port, Driver what moves the
	// frames ("memif", "net_af_packet", …).
	Name, Driver string
	// Interface is the kernel's network interface below the port, as it was called
	// when the port was opened; empty where there is none.
	Interface string
	// MAC is the port's Ethernet address, in wire order.
	MAC [6]byte
	// MTU is the largest IP packet, header included, in bytes. The largest
	// frame is EtherHeaderLen longer.
	MTU int
	// TxUDPChecksum: the sender leaves the UDP checksum 0. Either the port fills
	// it in on the way out, or the wire needs none. The IPv4 header checksum is
	// always the caller's to compute.
	TxUDPChecksum bool
	// TxUDP6Checksum: the port fills in the UDP checksum of IPv6 packets without
	// extension headers, which the sender leaves 0. There has to be one, also on a
	// wire that needs none (RFC 8200 section 8.1).
	TxUDP6Checksum bool
	// SharedRx: another process can change received bytes at any time. Headers
	// must be copied out before they are checked.
	SharedRx bool
	// Datagrams: the port is a UDP socket of the kernel. A packet's Data is a UDP
	// payload in place of a frame, at most MTU less IP and UDP headers (for IPv4
	// 28 bytes), Packet.Peer is the other end, and checksums are the kernel's.
	Datagrams bool
	// Batches: datagrams to one peer that follow each other and have one length
	// leave in one send, up to BatchPackets and BatchBytes, for as long as the kernel
	// takes it.
	Batches bool
	// FragmentFrom: where the kernel fragments nothing that the port's own link takes,
	// as with IPv6, the length from which on it does fragment a datagram with
	// TxFragment; the buffers of Alloc have the capacity. 0: it fragments those of any length.
	FragmentFrom int
	// ReceiveWindow is how many packets of MTU size wait in the port until Rx
	// takes them, where that bounds what peers may be allowed to send; 0 where
	// the caller's own bounds hold.
	ReceiveWindow int
	// Wire is false for the loopback driver: Rx never returns a frame and
	// whatever Tx takes is gone.
	Wire bool
	// Siblings: other workers of this urdmad are reached by way of the port, too, and
	// their packets come in by it.
	Siblings bool
}

const (
	// BatchPackets is how many datagrams every kernel since 4.18 cuts out of one send
	// (UDP_SEGMENT), and receivers join.
	BatchPackets = 64
	// BatchBytes is how long they can be together: the longest UDP payload.
	BatchBytes = 65507
)

// Offloader is a Port that can say in words which of the kernel's offloads it
// uses, for people; they may change while it is open.
type Offloader interface{ Offloads() string }

// Grouper is a port of datagrams that takes what is sent to multicast groups, by each of its
// queues as that joins them.
type Grouper interface {
	// Join has a queue's Rx return what others send to a group, with its number, from 1 on. To
	// be called, as Leave, by the caller of Rx.
	Join(queue int, group netip.Addr) (number uint16, err error)
	// Leave undoes Join. What Rx returned before may still be used.
	Leave(queue int, number uint16)
}

// Port is one way into a network. Frames pass through its queues; see the
// package comment for ownership, threads and behaviour while the link is down.
type Port interface {
	// Info describes the port; constant from open to close.
	Info() Info

	// Queues is how many queues the port has, at least 1, and Queue returns one
	// of them, 0 to Queues()-1: the same one at each call. Both are constant from
	// open to close.
	Queues() int
	Queue(i int) Queue

	// Link reports whether frames can pass now.
	Link() bool

	// Watch has f called with Link's new answer at each change from now on until
	// Close, in the order of the changes, from any goroutine. f must not block,
	// nor call Watch or Close.
	Watch(f func(up bool))

	// Stats returns the counters since open, summed over the queues.
	Stats() Stats

	// Close releases everything. Closing twice is harmless.
	Close() error
}
