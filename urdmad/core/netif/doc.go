// Package netif makes a port an IP host: it answers ARP and echo requests, resolves neighbours, verifies
// checksums, and returns received UDP datagrams one by one.
//
// Receiving (rx.go): Poll takes a burst of packets from the port, and Next returns the datagrams for our
// address one by one. The next call of Next releases a datagram unless its user kept it (held.go).
//
// Sending (tx.go, path.go): Alloc returns a transmit buffer, and Path.Send puts the outer headers before
// the payload and queues the frame. A Path follows a neighbour whose Ethernet address changes.
//
// datagrams.go is for ports that are UDP sockets and carry datagrams.
//
// The headers before TRP are built and parsed only here.
//
// The package must not know TRP, connections or queue pairs. All of it runs on the worker's thread.
//
// Next returns datagrams rather than calling a callback. This saves a call through an interface for each
// datagram, and after a memory fault in the middle of a burst the loop continues with the next datagram.
package netif
