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
	// ErrGone: the connection to urdmad is lost; it died, or broke the protocol.
	ErrGone = fmt.Errorf("verbs: urdmad is gone: %w", syscall.EIO)
	// ErrClosed: the session was closed.
	ErrClosed = fmt.Errorf("verbs: %w", net.ErrClosed)
)

// refused is what urdmad answered to a request.
func refused(t abi.Type, status int32) error {
	if status < 0 {
		status = -status
	}
	return fmt.Errorf("verbs: %s: %w", t.Text(), syscall.Errno(status))
}
