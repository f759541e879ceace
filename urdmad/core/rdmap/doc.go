// Package rdmap is one DDP and RDMAP stream (RFC 5040, 5041) between a queue
// pair and whatever carries segments in order: TRP (package trp) or MPA over TCP
// (package mpa).
//
// Down: Next names the segment to send next by a token, Build writes it into a
// buffer, Sent notes that it went out with a mark, Acked frees and completes what
// the peer has up to a mark. A token says what the segment belongs to and from
// which byte on, so one that was lost is built again from the work request and
// registered memory; no copy is kept. A mark is an ordinal: the carrier's number
// of the segment, from 1, whatever its sequence numbers look like.
//
// Up: Deliver takes the next segment in order and says whether it was placed,
// waits for a receive, or is refused, with the code of the Terminate to send;
// every check comes before a byte is placed.
//
// The package must not know packets, ports, addresses or retransmission.
//
// The sink STag of a Read names the work request, not memory: so scatter lists of any length
// work, and a peer can answer only Reads that were asked.
package rdmap
