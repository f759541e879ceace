package cmid

import (
	"errors"
	"fmt"
	"syscall"

	"urdma/verbs/abi"
)

// ErrDisconnected: the connection has ended.
var ErrDisconnected = fmt.Errorf("verbs: disconnected: %w", syscall.ENOTCONN)

// ErrNoWay: the peer, or the gateway to it, was not found.
var ErrNoWay = errors.New("verbs: no way to the peer")

// RejectedError is returned if the peer rejects the connection or nobody listens on the port. It wraps
// ECONNREFUSED.
type RejectedError struct {
	PrivateData []byte // the peer's argument of Reject; nil if nobody listens
}

func (e *RejectedError) Error() string {
	return fmt.Sprintf("verbs: connection rejected, with %d bytes of private data", len(e.PrivateData))
}

func (e *RejectedError) Unwrap() error { return syscall.ECONNREFUSED }

func endedBy(status int32) error {
	if status == 0 {
		return ErrDisconnected
	}
	return fmt.Errorf("%w: %w", ErrDisconnected, syscall.Errno(-status))
}

func handshakeError(ev *abi.CMEvent) error {
	status := ev.Status
	if status < 0 {
		status = -status
	}
	switch ev.Event {
	case abi.CMRejected:
		return &RejectedError{PrivateData: append([]byte(nil), ev.Param.Private()...)}
	case abi.CMAddrError, abi.CMRouteError:
		return fmt.Errorf("%w: %w", ErrNoWay, syscall.Errno(status))
	case abi.CMUnreachable:
		if ev.Status > 0 { // the response to a request for datagrams
			return &RejectedError{PrivateData: append([]byte(nil), ev.Param.Private()...)}
		}
		return fmt.Errorf("verbs: the peer does not answer: %w", syscall.Errno(status))
	}
	return fmt.Errorf("verbs: rdma_cm event %d: %w", ev.Event, syscall.Errno(status))
}
