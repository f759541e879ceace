package memif

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// interrupt is the eventfd by which one side wakes the other, by writing 8 bytes to it. The peer shares the open file,
// can fill its counter, and can make it blocking at any moment, so plain read and write could block the worker for
// ever. Therefore it is never read, only watched for further writes (EPOLLET, queue.adopt), and signalled by the kernel
// (kick_aio_unsafe.go), which does not wait. Other kinds of files are refused. A socket, for example, would bring
// descriptors whose last close can wait for ever, and the peer can hold the lock of a socket that it shares, by
// receiving to memory that is not there yet.
type interrupt struct {
	fd      int
	signals *signaller // if we write to it
}

var kickByte = [8]byte{1} // the bytes written to an eventfd: the number 1, little-endian

// newInterrupt creates a client's interrupt.
func newInterrupt(write bool) (interrupt, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return interrupt{fd: -1}, fmt.Errorf("memif: interrupt: %w", err)
	}
	i, err := interruptOf(fd, write)
	if err != nil {
		closeFD(fd)
	}
	return i, err
}

func interruptOf(fd int, write bool) (i interrupt, err error) {
	i.fd = fd
	if write {
		i.signals, err = newSignaller(fd)
	}
	if err != nil {
		i.fd = -1
	}
	return i, err
}

// openInterrupt checks an fd that a peer passed. On error the caller still owns the fd.
func openInterrupt(fd int, write bool) (interrupt, error) {
	what, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
	if err != nil || what != "anon_inode:[eventfd]" {
		return interrupt{fd: -1}, fmt.Errorf("memif: interrupt is %q, expected an eventfd (%v)", what, err)
	}
	return interruptOf(fd, write)
}

// kick wakes the peer. It never waits.
func (i *interrupt) kick() {
	if i.signals != nil {
		i.signals.signal()
	}
}

func (i *interrupt) close() {
	if i.signals != nil {
		i.signals.close()
	}
	closeFD(i.fd)
	i.fd, i.signals = -1, nil
}
