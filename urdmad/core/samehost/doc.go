// Package samehost carries messages between two queue pairs of one urdmad. Each work request is one copy
// from the sender's memory to the receiver's, after the checks that a receiver on a network makes, with the
// same causes of refusal (package rdmap's codes). No packet is built.
//
// transfer.go executes work requests, answer.go answers Reads and atomic operations. conn.go begins and
// ends connections. rnr.go waits for receives. cut.go stops connections while a port's link is
// administratively down. delay.go delays completions until the peer's answer.
//
// The package must not know packets, ports or reliability.
package samehost
