package control

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"urdma/verbs/abi"
)

// messages is a client's connection: requests come in whole, with descriptors.
type messages struct {
	conn     *net.UnixConn
	received []*os.File // descriptors of the request at hand
	closer   *closer    // of the client's user
}

// receive reads one message and its descriptors, which are the session's also
// after an error: a message of no bytes looks like the end of the connection
// and may bring some.
func (m *messages) receive(buf []byte) (int, error) {
	oob := make([]byte, unix.CmsgSpace(4*abi.MaxFDs))
	n, oobn, flags, _, err := m.conn.ReadMsgUnix(buf, oob)
	if oobn > 0 {
		var bad error
		if m.received, bad = receivedFiles(oob[:oobn]); err == nil {
			err = bad
		}
	}
	if len(m.received) > 0 && m.closer.stuck() {
		return 0, fmt.Errorf("control: %d descriptors of the user can't be closed", maxUnclosed)
	}
	switch {
	case n == 0 && err == nil, errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
		return 0, errHangUp
	case err != nil:
		return 0, err
	case flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0:
		return 0, fmt.Errorf("control: message longer than %d bytes or with more than %d descriptors", abi.MaxMessage, abi.MaxFDs)
	}
	return n, nil
}

func receivedFiles(oob []byte) ([]*os.File, error) {
	if len(oob) == 0 {
		return nil, nil
	}
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, fmt.Errorf("control: ancillary data: %w", err)
	}
	var files []*os.File
	for i := range messages {
		fds, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			continue // not descriptors
		}
		for _, fd := range fds {
			unix.CloseOnExec(fd)
			files = append(files, os.NewFile(uintptr(fd), "from client"))
		}
	}
	return files, nil
}

// takeFile returns the next descriptor of the request, whose owner the caller is
// from now on; nil if there is none.
func (m *messages) takeFile() *os.File {
	if len(m.received) == 0 {
		return nil
	}
	f := m.received[0]
	m.received = m.received[1:]
	return f
}

func (m *messages) dropReceived() {
	for _, f := range m.received {
		m.closer.close(f)
	}
	m.received = nil
}

// hungUp asks the kernel, which knows before the session does.
func (m *messages) hungUp() bool {
	raw, err := m.conn.SyscallConn()
	if err != nil {
		return true
	}
	gone := true // also where the session has closed it
	_ = raw.Control(func(fd uintptr) {
		p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		n, err := unix.Poll(p, 0)
		gone = err == nil && n > 0 && p[0].Revents&(unix.POLLHUP|unix.POLLRDHUP|unix.POLLERR) != 0
	})
	return gone
}
