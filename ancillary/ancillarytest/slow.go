// Package ancillarytest makes descriptors as hostile processes send them over unix sockets.
package ancillarytest

import (
	"io"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// SlowToClose returns a socket whose close waits until the test ends: its peer does not read what was sent.
func SlowToClose(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	peer, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { peer.Close() }) // with unread data: a reset
	_ = c.SetWriteDeadline(time.Now().Add(200 * time.Millisecond))
	_, _ = io.CopyN(c, zeros{}, 1<<30)
	f, err := c.(*net.TCPConn).File()
	c.Close()
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Dup(int(f.Fd())) // also makes the socket blocking
	f.Close()
	if err == nil {
		err = unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1, Linger: 3600})
	}
	if err != nil {
		t.Fatal(err)
	}
	return fd
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { return len(b), nil }

// Send sends a message, by default of one byte, with a descriptor, which then is open in the message only.
func Send(t testing.TB, to, fd int, message ...byte) {
	t.Helper()
	if len(message) == 0 {
		message = []byte{1}
	}
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		if err := unix.Sendmsg(to, message, unix.UnixRights(fd), nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL); err != nil {
			t.Log("a descriptor can't be sent:", err)
		}
		unix.Close(fd)
	}()
	select {
	case <-closed:
	case <-time.After(time.Second): // it was not sent, or the receiver has closed it before
	}
}
