package verbs

import (
	"errors"
	"fmt"
	"syscall"

	"urdma/reason"
	"urdma/verbs/cmid"
	"urdma/verbs/session"
)

// Errors that callers test for with errors.Is.
var (
	// ErrNoDaemon: no urdmad listens on any of the sockets tried.
	ErrNoDaemon = session.ErrNoDaemon
	// ErrVersion: urdmad speaks another version of the control protocol.
	ErrVersion = session.ErrVersion
	// ErrGone: the connection to urdmad is lost; it died, or broke the protocol.
	ErrGone = session.ErrGone
	// ErrClosed: the object, or the client it belongs to, was closed.
	ErrClosed = session.ErrClosed
	// ErrQueueFull: no free slot in a send or receive queue; poll completions first.
	ErrQueueFull = fmt.Errorf("verbs: the queue is full: %w", syscall.ENOMEM)
	// ErrState: a send was posted to a queue pair that is not connected yet, or, of
	// type UD, not started.
	ErrState = fmt.Errorf("verbs: the queue pair is not connected: %w", syscall.EINVAL)
	// ErrWorkRequest: the work request has too many or too long elements, flags that
	// don't fit its operation, an operation that queue pairs of its type lack, a
	// destination that is no address, or no shared receive queue of the peer's.
	ErrWorkRequest = fmt.Errorf("verbs: malformed work request: %w", syscall.EINVAL)
	// ErrUnsupported: urdma does not have the operation.
	ErrUnsupported = fmt.Errorf("verbs: unsupported operation: %w", syscall.EOPNOTSUPP)
	// ErrOverrun: completions were lost because the completion queue was full.
	ErrOverrun = fmt.Errorf("verbs: completion queue overrun: %w", syscall.EOVERFLOW)
	// ErrNoChannel: waiting needs a completion queue with a completion channel.
	ErrNoChannel = errors.New("verbs: the completion queue has no completion channel")
	// ErrDisconnected: the connection has ended.
	ErrDisconnected = cmid.ErrDisconnected
	// ErrNoWay: the peer, or the gateway to it, was not found; beside it EHOSTUNREACH,
	// or ETIMEDOUT where time was up before that was certain.
	ErrNoWay = cmid.ErrNoWay
	// ErrSharedQueue: Conn's own Send, Write, Read and Recv need completion
	// queues that nobody else polls.
	ErrSharedQueue = errors.New("verbs: the connection's completion queues are not its own; post and poll instead")
)

// RejectedError is the answer of a peer that does not want the connection, or
// of a host where nobody listens on the port. It wraps ECONNREFUSED.
type RejectedError = cmid.RejectedError

// CompletionError is a work request that failed. Unwrap gives ErrDisconnected
// where the request was flushed, as happens to all that wait when a connection
// ends.
type CompletionError struct{ Completion Completion }

func (e *CompletionError) Error() string {
	c := &e.Completion
	if c.VendorErr != 0 {
		return fmt.Sprintf("verbs: %v failed: %v (%v: %s)", c.Op, c.Status, reason.Number(c.VendorErr), reason.Number(c.VendorErr).What())
	}
	return fmt.Sprintf("verbs: %v failed: %v", c.Op, c.Status)
}

func (e *CompletionError) Unwrap() error {
	if e.Completion.Status == StatusWRFlushErr {
		return ErrDisconnected
	}
	return nil
}
