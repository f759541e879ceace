package session

import (
	"os"

	"golang.org/x/sys/unix"

	"urdma/verbs/abi"
)

// EventSocket wraps a socket on which urdmad sends messages of one type. It is non-blocking, so a goroutine
// that waits on it takes no thread.
func EventSocket(fd int, name string) (*os.File, error) {
	if err := unix.SetNonblock(fd, true); err != nil {
		_ = unix.Close(fd) // unusable
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// ReadEvents calls handle for each message until the socket is closed by either side. A message of another
// length belongs to another version and is skipped.
func ReadEvents[T any](f *os.File, handle func(*T)) {
	buf := make([]byte, abi.MaxMessage)
	for {
		n, err := f.Read(buf)
		if err != nil {
			return
		}
		if v, ok := abi.Decode[T](buf[:n]); ok {
			handle(&v)
		}
	}
}
