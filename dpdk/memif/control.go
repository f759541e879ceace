package memif

import (
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"golang.org/x/sys/unix"

	"urdma/ancillary"
)

// control is one end of the control socket.
type control struct {
	conn   *net.UnixConn
	closer *ancillary.Closer // of descriptors that the peer sends
}

// replyWait is the time limit for the peer's next message in the handshake.
const replyWait = 3 * time.Second

var (
	errClosed  = errors.New("memif: peer closed the control socket")
	errRefused = errors.New("memif: peer refused")
)

// send sends one message, with a duplicate of fd unless that is -1.
func (c control) send(m message, fd int) error {
	var oob []byte
	if fd >= 0 {
		oob = unix.UnixRights(fd)
	}
	if err := c.conn.SetWriteDeadline(time.Now().Add(replyWait)); err != nil {
		return err
	}
	if _, _, err := c.conn.WriteMsgUnix(m[:], oob, nil); err != nil {
		return fmt.Errorf("memif: sending %v: %w", m.kind(), err)
	}
	return nil
}

// recv waits for one message. fd is -1, or owned by the caller. Anything except exactly one message with at
// most one fd is an error, and then no fd is left open.
func (c control) recv() (m message, fd int, err error) {
	fd = -1
	var buf [messageSize + 1]byte
	oob := ancillary.Buffer()
	n, oobn, flags, _, err := c.conn.ReadMsgUnix(buf[:], oob)
	fds, _ := ancillary.Descriptors(oob[:oobn]) // if they can't be read there are none
	if len(fds) == 1 {
		fd = fds[0]
	}
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		err = fmt.Errorf("memif: reading the control socket: %w", err)
	case err != nil || n == 0 && len(fds) == 0:
		err = errClosed
	case n != messageSize:
		err = fmt.Errorf("memif: control message of %d bytes, expected %d", n, messageSize)
	case len(fds) > 1 || flags&unix.MSG_CTRUNC != 0:
		err = fmt.Errorf("memif: control message with %d or more descriptors, expected at most one", len(fds))
	}
	if err != nil {
		for _, fd := range fds {
			c.drop(fd)
		}
		return m, -1, err
	}
	return message(buf[:messageSize]), fd, nil
}

// expect waits for one message of the given kind within replyWait.
func (c control) expect(want kind) (m message, fd int, err error) {
	if err := c.conn.SetReadDeadline(time.Now().Add(replyWait)); err != nil {
		return m, -1, err
	}
	m, fd, err = c.recv()
	if err != nil {
		return m, -1, fmt.Errorf("waiting for %v: %w", want, err)
	}
	if m.kind() == want {
		return m, fd, nil
	}
	c.drop(fd)
	if m.kind() == kindDisconnect {
		_, reason := m.disconnect()
		return m, -1, fmt.Errorf("%w: %q", errRefused, reason)
	}
	return m, -1, fmt.Errorf("memif: got %v, expected %v", m.kind(), want)
}

// drop closes a descriptor that the peer has sent, unless it is -1, without waiting.
func (c control) drop(fd int) {
	if fd >= 0 {
		c.closer.Close(ancillary.NewFile(fd))
	}
}

// hangUp closes the connection.
func (c control) hangUp() { _ = c.closer.HangUp(c.conn) } // nothing can be done about an error of close

func closeFD(fd int) {
	if fd >= 0 {
		unix.Close(fd)
	}
}
