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
// close.go ends connections, terminate.go refuses and is refused, rnr.go
// waits for receives, handshake.go has the wire side of setting up, whose rules
// are the connection manager's. datagrams.go has how messages of queue pairs of types UD and UC look
// (package datagram).
//
// The package must not know rdma_cm ids, client rings or memory, frames or
// Ethernet.
//
// # Two decisions
//
// A Terminate is looked at before the acknowledgement in the same packet, and after a
// refusal the acknowledgement stays before the refused segment: so the peer fails the work
// request that was refused (IBV_WC_REM_ACCESS_ERR and its kin) and does not flush it.
//
// A packet that ends a connection counts only inside the window.
package trp
