// Package samehost carries messages between two queue pairs of one urdmad: each
// work request is one copy from the sender's memory to the receiver's, after the
// checks that a wire's receiver makes and with the same causes of refusal
// (package rdmap's codes). No packet is built; captures are told through an
// Observer what a wire would carry.
//
// transfer.go carries work requests out, answer.go answers Reads and atomic
// operations, conn.go begins and ends connections, rnr.go waits for receives,
// cut.go holds all up while a port's link is down on purpose,
// delay.go has completions wait for the peer's answer.
//
// The package must not know packets, ports or reliability.
package samehost
