// Package rdmap implements one DDP and RDMAP stream (RFC 5040, 5041) between a queue pair and a carrier
// that delivers segments in order: TRP (package trp) or MPA over TCP (package mpa).
//
// To send: Next returns a token for the segment to send next, Build writes the segment into a buffer, Sent
// records that it was sent with a mark, and Acked completes everything that the peer has up to a mark. A
// token has the segment's work request or answer and the offset of its first byte, so a lost segment is
// built again from the work request and registered memory; no copy is kept. A mark is an ordinal: the
// carrier's count of segments, from 1, independent of its sequence numbers.
//
// To receive: Deliver takes the next segment in order and returns whether it was placed, waits for a
// receive, or is refused, with the code of the Terminate to send. All checks come before a byte is placed.
//
// The package must not know packets, ports, addresses or retransmission.
//
// The sink STag of a Read identifies the work request rather than memory. So scatter lists of any length
// work, and a peer can answer only Reads that were requested.
package rdmap
