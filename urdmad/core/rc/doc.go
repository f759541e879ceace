// Package rc implements the protocol of InfiniBand's reliable connections (InfiniBand Architecture
// Specification vol. 1, section 9.7): packet sequence numbers, acknowledgements, retransmission from the
// lost packet on (go-back-N), Reads and atomics, which may be repeated but are executed once, and receivers
// that are not ready.
//
// requester.go sends the requests of one side's messages and processes the responses. loss.go decides what
// is sent again and when. window.go bounds the packets in flight. responder.go judges the requests that
// arrive. answers.go has the responses to Reads and atomics, reply.go the acknowledgements and NAKs.
// sequence.go has the sequence numbers.
//
// The package is pure: packets and the time are its input, packets to send and results its output. It uses
// no clock, socket or memory, and sees no bytes of a message.
package rc
