// Package netif is a port as an IP host: it answers ARP and echo requests, knows
// the neighbours, verifies checksums, and hands UDP datagrams up one by one.
//
// Up: Poll takes what the port has, a burst at a time, and Next returns the
// datagrams for our address one after the other; rx.go. A datagram is given back
// at the next call of Next unless its taker kept it (held.go).
//
// Down: Alloc lends a transmit buffer, Path.Send puts the outer headers in front
// of a payload that is in place and queues the frame; tx.go, path.go. A Path
// follows a neighbour that changes its address.
//
// A port that is a UDP socket carries datagrams: datagrams.go.
//
// What stands before TRP is built and parsed here and nowhere else.
//
// The package must not know TRP, connections or queue pairs. All of it runs on
// the worker's thread.
//
// Datagrams are pulled by Next, not handed to a callback: no call through an interface for
// each, and after a memory fault in the midst of a burst the loop goes on with the next.
package netif
