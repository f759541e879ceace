// Package trp implements connections over TRP, reliable UDP (docs/WIRE.md): it carries the segments of an
// rdmap.Stream in TRP packets, in order and without loss.
//
// A received packet: Stack.Receive takes datagrams from an interface and finds their connection (port.go).
// rx.go checks the packet, processes its acknowledgement (package reliable) and classifies it by its PSN:
// in order, out of order (held.go), duplicate, or outside the window. deliver.go passes the segment to the
// stream.
//
// A work request: Transmit (tx.go) first sends lost segments, then the stream's next segments, then an
// acknowledgement if no segment carried it.
//
// close.go ends connections. terminate.go sends and handles Terminate messages. rnr.go waits for receives.
// handshake.go encodes and decodes the messages that set up a connection, whose rules are in the connection
// manager (package cm). datagrams.go formats the messages of queue pairs of types UD and UC (package
// datagram).
//
// The package must not know rdma_cm ids, client rings, client memory, frames or Ethernet.
//
// # Two decisions
//
// A Terminate is processed before the acknowledgement in the same packet, and after a refusal we
// acknowledge nothing from the refused segment on. So the peer fails the refused work request
// (IBV_WC_REM_ACCESS_ERR or similar) rather than flushing it.
//
// A packet that ends a connection is accepted only inside the window.
package trp
