package nldev

import (
	"io"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"urdma/urdmad/control"
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

// TestSlowDescriptor: a descriptor that takes long to close does not keep urdmad from ending.
func TestSlowDescriptor(t *testing.T) {
	ended := make(chan struct{}, 1)
	hooks := control.Hooks{Ended: func(*control.Session) { ended <- struct{}{} }}
	r := controltest.Start(t, func(r *controltest.Running) {
		Attach(r.Server, *sample(t))
		r.Server.Attach(&hooks, nil)
	})
	c, err := controltest.Dial(r.Socket)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fd := slowToClose(t)
	open := abi.Header{Type: abi.OpenRDMANetlink}
	open.Length = uint32(abi.Size[abi.Header]())
	if _, err := c.Write(abi.Bytes(&open)); err != nil {
		t.Fatal(err)
	}
	_, _, err = c.WriteMsgUnix([]byte("x"), unix.UnixRights(fd), nil)
	go unix.Close(fd) // takes long if the other end has closed it by now
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Error("the session goes on")
	}
}
