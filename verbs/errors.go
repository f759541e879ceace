package verbs

import (
	"errors"
	"fmt"
	"syscall"

	"urdma/verbs/abi"
	"urdma/wire"
)

// Errors that callers may test for with errors.Is. Refusals of urdmad carry the
// syscall.Errno that the C functions would set, too.
var (
	// ErrNoDaemon: no urdmad answers at the socket.
	ErrNoDaemon = errors.New("verbs: no urdmad is running")
	// ErrGone: urdmad ended, or hung up; the client and all of its objects are
	// of no more use.
	ErrGone = errors.New("verbs: urdmad is gone")
	// ErrClosed: the object was closed.
	ErrClosed = errors.New("verbs: closed")
	// ErrQueueFull: the queue holds as many requests as it can; completions
	// free its slots.
	ErrQueueFull = errors.New("verbs: queue is full")
	// ErrRequest: a work request or an argument is wrong in itself.
	ErrRequest = errors.New("verbs: bad request")
	// ErrOverrun: a completion queue was too small and lost completions; the
	// queue pairs that complete there have failed.
	ErrOverrun = errors.New("verbs: completion queue overrun")
	// ErrUnreachable: the peer did not answer.
	ErrUnreachable = errors.New("verbs: peer is unreachable")
)

// RejectedError says that the listener refused a connection, with the private
// data it sent along. It is syscall.ECONNREFUSED to errors.Is.
type RejectedError struct {
	PrivateData []byte
}

func (e *RejectedError) Error() string {
	return fmt.Sprintf("verbs: connection rejected (%d bytes of private data)", len(e.PrivateData))
}

// Unwrap makes it syscall.ECONNREFUSED.
func (e *RejectedError) Unwrap() error { return syscall.ECONNREFUSED }

// Status is how a work request ended, enum ibv_wc_status.
type Status uint32

// Values of Status.
const (
	Success       Status = abi.StatusSuccess
	LocalLength   Status = abi.StatusLocLenErr      // a message is longer than its receive, or than any may be
	LocalQP       Status = abi.StatusLocQPOpErr     // the request is wrong in itself
	LocalProtect  Status = abi.StatusLocProtErr     // memory the queue pair may not use, or not like this
	Flushed       Status = abi.StatusWRFlushErr     // the queue pair had failed or the connection ended
	RemoteInvalid Status = abi.StatusRemInvReqErr   // the peer could not take the message
	RemoteAccess  Status = abi.StatusRemAccessErr   // the peer's memory may not be used like this
	RemoteFailure Status = abi.StatusRemOpErr       // the peer failed otherwise
	RetryExceeded Status = abi.StatusRetryExcErr    // the peer is silent
	NoReceive     Status = abi.StatusRNRRetryExcErr // the peer had no receive posted
)

var statusTexts = map[Status]string{
	Success: "success", LocalLength: "local length error", LocalQP: "local queue pair operation error",
	LocalProtect: "local protection error", Flushed: "work request flushed", RemoteInvalid: "remote invalid request",
	RemoteAccess: "remote access error", RemoteFailure: "remote operation error", RetryExceeded: "retry exceeded",
	NoReceive: "no receive posted at the peer",
}

func (s Status) String() string {
	if t := statusTexts[s]; t != "" {
		return t
	}
	return fmt.Sprintf("completion status %d", uint32(s))
}

// CompletionError is the error of a work request that failed.
type CompletionError struct {
	ID     uint64
	Status Status
	// Cause is the Terminate code (layer<<12 | etype<<8 | code) that ended the
	// connection, 0 if none did.
	Cause uint32
}

func (e *CompletionError) Error() string {
	if e.Cause != 0 {
		return fmt.Sprintf("verbs: work request %d: %v (%v)", e.ID, e.Status, wire.TermCode(e.Cause))
	}
	return fmt.Sprintf("verbs: work request %d: %v", e.ID, e.Status)
}
