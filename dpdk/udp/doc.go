// Package udp implements a port as a UDP socket of the kernel: RDMA between any two machines without root
// (docs/WIRE.md chapter 11). Its packets are UDP payloads, not frames (port.Info.Datagrams).
//
// Sending: tx.go collects a burst. gso.go groups it into messages; each contains datagrams to one peer, which
// the kernel splits again (UDP_SEGMENT). One sendmmsg sends them all.
//
// Receiving: rx.go receives messages by recvmmsg, each one datagram or several that the kernel has joined
// (UDP_GRO), and returns the datagrams one by one without copying them.
//
// groups.go has the multicast groups, each with a socket of its own.
//
// If there are several workers, the port has a socket for each of them at the same address; a filter chooses
// the socket for each datagram (socket.go).
//
// probe.go checks that the kernel really supports these options.
//
// The package must not know the contents of datagrams.
package udp
