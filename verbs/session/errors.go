package session

import (
	"errors"
	"fmt"
	"net"
	"syscall"

	"urdma/verbs/abi"
)

// Errors that callers test for with errors.Is.
var (
	// ErrNoDaemon: no urdmad listens on any of the sockets tried.
	ErrNoDaemon = errors.New("verbs: no urdmad is running; start one, or name its socket by URDMA_SOCKET")
	// ErrVersion: urdmad speaks another version of the control protocol.
	ErrVersion = errors.New("verbs: urdmad speaks another version of the protocol")
	// ErrGone: the session with urdmad is lost: urdmad died or violated the protocol.
	ErrGone = fmt.Errorf("verbs: urdmad is gone: %w", syscall.EIO)
	// ErrClosed: the session was closed.
	ErrClosed = fmt.Errorf("verbs: %w", net.ErrClosed)
)

// refused returns the error for the status in urdmad's response.
func refused(t abi.Type, status int32) error {
	if status < 0 {
		status = -status
	}
	return fmt.Errorf("verbs: %s: %w", t.Text(), syscall.Errno(status))
}
