package memif

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// interrupt is the fd by which one side wakes the other. The protocol expects an eventfd, to which a side
// writes or from which it reads 8 bytes. The peer shares the open file and can make it blocking at any
// moment, so plain read and write could block the worker for ever. Therefore:
//
//   - a client of ours creates a socketpair and passes one end: the peer can
//     use it like an eventfd, and the other end is private;
//   - sockets are used with MSG_DONTWAIT, whatever their flags are;
//   - a socket may bring descriptors, whose last close can take for ever (FUSE, SO_LINGER). They are not
//     received: they stay in the socket, and a goroutine closes that;
//   - a peer's eventfd is read with RWF_NOWAIT and signalled by the kernel
//     (kick_aio_unsafe.go); neither waits.
//
// Other kinds of files are refused.
type interrupt struct {
	fd       int
	socket   bool
	signals  *signaller    // for eventfds to which we write
	unclosed *atomic.Int32 // of the port: sockets that are being closed; nil: close waits
}

// maxUnclosed is the number of sockets being closed beyond which a port makes no further link.
const maxUnclosed = 64

var errUnclosed = errors.New("memif: interrupts of earlier peers take too long to close")

var kickByte = [8]byte{1} // the bytes written to an eventfd: the number 1, little-endian

// newInterrupt creates a client's interrupt. It returns our end, and the fd to be passed to the peer and
// closed.
func newInterrupt() (ours interrupt, theirs int, err error) {
	p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return interrupt{fd: -1}, -1, fmt.Errorf("memif: interrupt: %w", err)
	}
	return interrupt{fd: p[0], socket: true}, p[1], nil
}

// openInterrupt checks an fd that a peer passed. On error the caller still owns the fd.
func openInterrupt(fd int, write bool) (interrupt, error) {
	if _, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE); err == nil {
		if !ofSocketpair(fd) {
			return interrupt{fd: -1}, fmt.Errorf("memif: interrupt is a socket, expected one of a socketpair, of type " +
				"SOCK_STREAM")
		}
		return interrupt{fd: fd, socket: true}, nil
	}
	what, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
	if err != nil || what != "anon_inode:[eventfd]" {
		return interrupt{fd: -1}, fmt.Errorf("memif: interrupt is neither an eventfd nor a socket: %q (%v)", what, err)
	}
	i := interrupt{fd: fd}
	if write {
		i.signals, err = newSignaller(fd)
	}
	return i, err
}

// ofSocketpair reports whether a socket could come from newInterrupt. A write to another socket might reach a
// service that receives our credentials with it (SO_PASSCRED).
func ofSocketpair(fd int) bool {
	if kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE); err != nil || kind != unix.SOCK_STREAM {
		return false
	}
	for _, end := range []func(int) (unix.Sockaddr, error){unix.Getsockname, unix.Getpeername} {
		at, err := end(fd)
		// Package unix returns "@" for a socket without a name.
		if name, ok := at.(*unix.SockaddrUnix); err != nil || !ok || name.Name != "@" {
			return false
		}
	}
	return true
}

// kick wakes the peer. It never waits: if the peer has not drained its interrupt, that is still readable and
// needs no further kick.
func (i *interrupt) kick() {
	switch {
	case i.fd < 0:
	case i.socket:
		unix.Sendto(i.fd, kickByte[:], unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, nil)
	case i.signals != nil:
		i.signals.signal()
	}
}

// drain reads until the fd is no longer readable; false: the peer has sent descriptors with its kicks.
func (i *interrupt) drain() (ok bool) {
	switch {
	case i.fd < 0:
	case i.socket:
		var b [64]byte
		for range 1024 { // limited, because the peer may keep writing
			n, cut, err := receive(i.fd, &b, len(b), unix.MSG_PEEK)
			if err != nil || cut {
				return !cut
			}
			_, _, _ = receive(i.fd, &b, n, 0) // no byte more, which could have come with a descriptor since
			if n < len(b) {
				return true
			}
		}
	default:
		unix.Preadv2(i.fd, [][]byte{make([]byte, 8)}, -1, unix.RWF_NOWAIT)
	}
	return true
}

func (i *interrupt) close() {
	if i.signals != nil {
		i.signals.close()
	}
	if fd, n := i.fd, i.unclosed; fd >= 0 && i.socket && n != nil {
		n.Add(1)
		go func() {
			unix.Close(fd)
			n.Add(-1)
		}()
	} else {
		closeFD(fd)
	}
	i.fd, i.signals = -1, nil
}
