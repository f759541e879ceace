package nldev

import (
	"io"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"urdma/urdmad/control/controltest"
	"urdma/verbs/abi"
)

// slowToClose returns a socket that takes long to close: its peer does not read what was sent.
func slowToClose(t *testing.T) int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	peer, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { peer.Close() })
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
		err = unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1, Linger: 20})
	}
	if err != nil {
		t.Fatal(err)
	}
	return fd
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { return len(b), nil }

// TestSlowDescriptor: a descriptor that takes long to close delays neither the answer nor the end of urdmad.
func TestSlowDescriptor(t *testing.T) {
	r := controltest.Start(t, func(r *controltest.Running) { Attach(r.Server, *sample(t)) })
	c, err := controltest.Dial(r.Socket)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fd := slowToClose(t)
	open := abi.OpenRDMANetlinkRequest{Header: abi.Header{Type: abi.OpenRDMANetlink,
		Length: uint32(abi.Size[abi.OpenRDMANetlinkRequest]())}}
	answer := make([]byte, maxRequest)
	if _, err := c.Write(abi.Bytes(&open)); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Read(answer); err != nil || n != abi.Size[abi.Header]() {
		t.Fatal(n, err)
	}
	_, _, err = c.WriteMsgUnix([]byte("x"), unix.UnixRights(fd), nil)
	go unix.Close(fd) // takes long if the other end has closed it by now
	if err != nil {
		t.Fatal(err)
	}
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
	if n, err := c.Read(answer); err != nil || native.Uint16(answer[4:]) != unix.NLMSG_ERROR {
		t.Errorf("an answer of %d bytes, %v", n, err)
	}
}
