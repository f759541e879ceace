package verbs

import (
	"errors"
	"fmt"
	"syscall"

	"urdma/reason"
	"urdma/reason/words"
	"urdma/verbs/cmid"
	"urdma/verbs/session"
)

// Errors that callers test for with errors.Is.
var (
	// ErrNoDaemon: no urdmad listens on any of the sockets tried.
	ErrNoDaemon = session.ErrNoDaemon
	// ErrVersion: urdmad speaks another version of the control protocol.
	ErrVersion = session.ErrVersion
	// ErrGone: the session with urdmad is lost: urdmad died or violated the protocol.
	ErrGone = session.ErrGone
	// ErrClosed: the object, or the client it belongs to, was closed.
	ErrClosed = session.ErrClosed
	// ErrQueueFull: no free slot in a send or receive queue; poll completions first.
	ErrQueueFull = fmt.Errorf("verbs: the queue is full: %w", syscall.ENOMEM)
	// ErrState: a send was posted to a queue pair that is not connected yet or, for type UD, not started.
	ErrState = fmt.Errorf("verbs: the queue pair is not connected: %w", syscall.EINVAL)
	// ErrWorkRequest: the work request has too many or too long elements, flags that its operation does not
	// allow, an operation that its type of queue pair does not support, an invalid destination address, or no
	// number of the peer's shared receive queue.
	ErrWorkRequest = fmt.Errorf("verbs: malformed work request: %w", syscall.EINVAL)
	// ErrUnsupported: urdma does not support the operation.
	ErrUnsupported = fmt.Errorf("verbs: unsupported operation: %w", syscall.EOPNOTSUPP)
	// ErrOverrun: completions were lost because the completion queue was full.
	ErrOverrun = fmt.Errorf("verbs: completion queue overrun: %w", syscall.EOVERFLOW)
	// ErrNoChannel: waiting needs a completion queue with a completion channel.
	ErrNoChannel = errors.New("verbs: the completion queue has no completion channel")
	// ErrDisconnected: the connection has ended.
	ErrDisconnected = cmid.ErrDisconnected
	// ErrNoWay: the peer, or the gateway to it, was not found. The error also wraps ETIMEDOUT.
	ErrNoWay = cmid.ErrNoWay
	// ErrSharedQueue: Conn's own Send, Write, Read and Recv need completion queues that nothing else polls.
	ErrSharedQueue = errors.New("verbs: the connection's completion queues are not its own; post and poll instead")
)

// RejectedError is returned if the peer rejects the connection or nobody listens on the port. It wraps
// ECONNREFUSED.
type RejectedError = cmid.RejectedError

// CompletionError describes a work request that failed. Unwrap returns ErrDisconnected if the request was
// flushed, as all outstanding ones are when a connection ends.
type CompletionError struct{ Completion Completion }

func (e *CompletionError) Error() string {
	c := &e.Completion
	if c.VendorErr != 0 {
		return fmt.Sprintf("verbs: %v failed: %v (%v: %s)", c.Op, c.Status, reason.Number(c.VendorErr),
			words.What(reason.Number(c.VendorErr)))
	}
	return fmt.Sprintf("verbs: %v failed: %v", c.Op, c.Status)
}

func (e *CompletionError) Unwrap() error {
	if e.Completion.Status == StatusWRFlushErr {
		return ErrDisconnected
	}
	return nil
}
