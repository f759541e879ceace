// Package rc is the protocol of InfiniBand's reliable connections (InfiniBand
// Architecture Specification vol. 1, section 9.7): packet sequence numbers,
// acknowledgements, repetition from where a packet was lost (go-back-N), Reads and
// atomics, which are repeated but carried out once, and receivers that are not ready.
//
// requester.go sends the requests of one side's messages and learns from answers what
// the other has; loss.go decides what is sent again and when; window.go bounds what is
// under way. responder.go judges the requests that arrive; answers.go has the answers
// that it owes to Reads and atomics, reply.go its acknowledgements. sequence.go has the
// sequence numbers.
//
// The package is pure: packets and the time come in, what is to be sent and what has
// come of it goes out. It knows no clock, socket or memory, and no bytes of a message.
package rc
