// Package udp is a port that is a UDP socket of the kernel: RDMA between any two
// machines without root (docs/WIRE.md chapter 11). Its packets are UDP payloads,
// not frames (port.Info.Datagrams).
//
// Down: tx.go collects a burst, gso.go makes messages of it, each the datagrams
// to one peer that the kernel can cut out of one send (UDP_SEGMENT), and one
// sendmmsg takes them all.
//
// Up: rx.go takes messages by recvmmsg, each one datagram or several that the
// kernel has joined (UDP_GRO), and lends them datagram by datagram where they
// lie; retain.go copies those that must wait.
//
// groups.go has multicast groups, each with a socket of its own.
//
// With several workers the port has a socket for each at one address, and a filter that it
// is given says which of them a datagram goes to (socket.go).
//
// probe.go finds out what the kernel really does before it is relied on.
//
// The package must not know what is in a datagram.
package udp
