// Package trp is a connection over our reliable UDP (docs/WIRE.md): it carries
// the segments of an rdmap.Stream in TRP packets, in order and without loss.
//
// A packet's way: Stack.Receive takes datagrams from an interface and finds
// their connection (port.go), rx.go checks the packet, takes its acknowledgement
// (package reliable) and decides by its PSN: in order, out of order (held.go),
// duplicate or outside; deliver.go hands the segment to the stream.
//
// A work request's way: Transmit (tx.go) sends lost segments first, then what
// the stream has next, then an acknowledgement if none of them carried it.
//
// close.go ends connections, terminate.go refuses and is refused, notready.go
// waits for receives, handshake.go has the wire side of setting up, whose rules
// are the connection manager's.
//
// The package must not know rdma_cm ids, client rings or memory, frames or
// Ethernet.
package trp
