package qp

import "urdma/urdmad/core/mem"

// Verdict is the result of a step. The zero Verdict means that the step was carried out.
type Verdict struct {
	Is  Outcome
	Why mem.Violation // if Is is Denied
}

// Outcome is the kind of a Verdict.
type Outcome uint8

const (
	Done       Outcome = iota
	Busy               // too many bytes wait to be written to the client's memory; nothing was done, retry later
	NoReceive          // no receive is posted; nothing was done, retry later
	NoRoom             // the next receive is too small for the message; it stays posted
	BadReceive         // the receive was invalid, and has completed with an error
	NoQueue            // the message names a shared receive queue that does not exist
	TooLong            // the message is longer than its receive; the receive has not completed: see FailReceive
	Revoked            // the destination was deregistered; a receive has not completed: see FailReceive
	Denied             // the peer has no right to this access
)
