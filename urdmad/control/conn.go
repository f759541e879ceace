package control

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"urdma/ancillary"
	"urdma/urdmad/control/account"
	"urdma/verbs/abi"
)

// conn is a client's connection. It receives whole requests with their descriptors.
type conn struct {
	*net.UnixConn
	received []*ancillary.File // descriptors of the current request
	closer   *ancillary.Closer // closer of the client's user
	oob      []byte            // buffer for ancillary data
}

// errHangUp reports the end of the connection.
var errHangUp = errors.New("control: the client hung up")

// newConn wraps a new connection; closer closes descriptors that are not used.
func newConn(c *net.UnixConn, closer *ancillary.Closer) conn {
	_ = c.SetWriteBuffer(unreadAnswers) // fails for a socket that is closed
	return conn{UnixConn: c, closer: closer, oob: ancillary.Buffer()}
}

// unreadAnswers is the largest amount of answers, in bytes (socket(7), SO_SNDBUF), that a client
// may leave unread before urdmad stops serving it. A client that reads each answer before its
// next request never reaches it. The limit also covers unread descriptors: the kernel allows
// urdmad RLIMIT_NOFILE of them in flight to all clients together (unix(7), ETOOMANYREFS).
const unreadAnswers = 4 * abi.MaxMessage

// Receive reads one message, of at most len(buf) bytes, and its descriptors (TakeFile). The descriptors are stored even
// after an error: a message of 0 bytes looks like the end of the connection and may carry some.
func (c *conn) Receive(buf []byte) (int, error) {
	n, oobn, flags, err := c.read(buf)
	if errors.Is(err, os.ErrDeadlineExceeded) && c.waits() { // the message came in time, this goroutine ran late
		_ = c.SetReadDeadline(time.Time{})
		n, oobn, flags, err = c.read(buf)
	}
	fds, bad := ancillary.Descriptors(c.oob[:oobn])
	for _, fd := range fds {
		c.received = append(c.received, ancillary.NewFile(fd))
	}
	if err == nil && bad != nil {
		err = fmt.Errorf("control: ancillary data: %w", bad)
	}
	switch {
	case n == 0 && err == nil, errors.Is(err, syscall.ECONNRESET):
		return 0, errHangUp
	case err != nil:
		return 0, err
	case flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0 || len(fds) > abi.MaxFDs:
		return 0, fmt.Errorf("control: message longer than %d bytes or with more than %d descriptors", len(buf), abi.MaxFDs)
	}
	return n, nil
}

// read waits for a message and receives it; not one with descriptors as long as too many of the user's can't be closed.
func (c *conn) read(buf []byte) (n, oobn, flags int, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, 0, 0, err
	}
	for {
		full := false
		failed := raw.Read(func(fd uintptr) bool {
			if full = c.closer.Full() && brings(int(fd)); full {
				return true
			}
			for again := true; again; again = errors.Is(err, unix.EINTR) {
				n, oobn, flags, _, err = unix.Recvmsg(int(fd), buf, c.oob, unix.MSG_CMSG_CLOEXEC)
			}
			return !errors.Is(err, unix.EAGAIN)
		})
		switch {
		case failed != nil:
			return 0, 0, 0, failed
		case !full:
			return max(n, 0), oobn, flags, err
		case !c.closer.Room(account.BlockingTimeout):
			return 0, 0, 0, fmt.Errorf("control: %d descriptors of the user can't be closed", ancillary.MaxUnclosed)
		}
	}
}

// brings reports whether the next message has descriptors.
func brings(fd int) bool {
	_, _, flags, _, err := unix.Recvmsg(fd, nil, nil, unix.MSG_PEEK|unix.MSG_DONTWAIT)
	return err == nil && flags&unix.MSG_CTRUNC != 0
}

// waits reports whether a message, or the end of the connection, can be read.
func (c *conn) waits() bool { return c.polls(unix.POLLIN) }

// TakeFile returns the next descriptor of the request, which the caller then owns; nil if there
// is none.
func (c *conn) TakeFile() *ancillary.File {
	if len(c.received) == 0 {
		return nil
	}
	f := c.received[0]
	c.received = c.received[1:]
	return f
}

// DropFiles closes the descriptors of the request that nobody has taken, without waiting.
func (c *conn) DropFiles() {
	for _, f := range c.received {
		c.closer.Close(f)
	}
	c.received = nil
}

// Close hangs up without waiting.
func (c *conn) Close() error { return c.closer.HangUp(c.UnixConn) }

// HungUp asks the kernel whether the client has hung up; the kernel knows it before the session
// does.
func (c *conn) HungUp() bool { return c.polls(unix.POLLRDHUP) }

// polls reports whether poll(2) returns one of events, or the end of the connection, without
// waiting.
func (c *conn) polls(events int16) bool {
	raw, err := c.SyscallConn()
	if err != nil {
		return true
	}
	found := true // true also if the session has closed the connection
	_ = raw.Control(func(fd uintptr) {
		p := []unix.PollFd{{Fd: int32(fd), Events: events}}
		n, err := unix.Poll(p, 0)
		found = err == nil && n > 0 && p[0].Revents&(events|unix.POLLHUP|unix.POLLERR) != 0
	})
	return found
}
