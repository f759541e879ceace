package control_test

import (
	"errors"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"urdma/ancillary/ancillarytest"
	"urdma/verbs/abi"
)

// TestSlowDescriptors: descriptors that a client sends over the sockets that it has got from urdmad, or behind the
// request that ends its session, and that take long to close, stop neither the worker nor another client, nor the end
// of urdmad.
func TestSlowDescriptors(t *testing.T) {
	r := start(t)
	x := &mutated{program: newProgram(t, r), r: r, at: -1}
	x.ask(abi.Hello, abi.HelloRequest{ABIVersion: abi.Version})
	device := x.handle(abi.OpenDevice, abi.OpenDeviceRequest{})
	x.handle(abi.CreateChannel, abi.HandleMessage{Handle: device})
	x.handle(abi.CMCreateChannel, abi.Header{})
	for _, fds := range x.fds { // of the greeting the doorbells, too
		for _, fd := range fds {
			ancillarytest.Send(t, fd, ancillarytest.SlowToClose(t))
		}
	}
	other := newWitness(t, r, &files{domain: file(t)})
	x.destroy()
	if len(x.made) > 0 || x.dead {
		t.Errorf("not destroyed: %v", x.made)
	}
	raw, err := x.c.conn.File()
	if err != nil {
		t.Fatal(err)
	}
	var slow []int
	for range 5 {
		slow = append(slow, ancillarytest.SlowToClose(t))
	}
	for _, fd := range slow { // a message of one byte is malformed
		ancillarytest.Send(t, int(raw.Fd()), fd)
	}
	raw.Close()
	x.leave()
	for range 10 {
		r.server.Workers[0].Turn(func() {})
	}
	if other.query() == nil {
		t.Error("another client is not served")
	}
	other.leave()
	r.ends(t)
}

// ends checks that the server ends, whatever waits.
func (r *running) ends(t *testing.T) {
	t.Helper()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.server.Close()
	}()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Fatal("urdmad does not end")
	}
}

// TestManyDescriptors: a message with more descriptors than any request has. The kernel closes those for which there is
// no room before recvmsg(2) returns, and the last of these takes long.
func TestManyDescriptors(t *testing.T) {
	r := start(t)
	fds := make([]int, 253) // of standard input
	fds[252] = ancillarytest.SlowToClose(t)
	c, err := dial(r.socket)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.conn.WriteMsgUnix(make([]byte, 16), unix.UnixRights(fds...), nil); err != nil {
		t.Fatal(err)
	}
	go unix.Close(fds[252])
	c.hungUp(t)
	r.ends(t)
}

// TestUnclosedConnections: a client of whose descriptors one can't be closed costs urdmad no descriptor for each
// connection that it makes and closes.
func TestUnclosedConnections(t *testing.T) {
	r := start(t)
	c, err := dial(r.socket)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := c.conn.File()
	if err != nil {
		t.Fatal(err)
	}
	ancillarytest.Send(t, int(raw.Fd()), ancillarytest.SlowToClose(t))
	raw.Close()
	c.hungUp(t)
	before := openFiles(t)
	for range 200 {
		if c, err = dial(r.socket); err != nil {
			t.Fatal(err)
		}
		c.conn.Close()
	}
	for end := time.Now().Add(time.Minute); openFiles(t) > before+20; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d descriptors are open, before there were %d", openFiles(t), before)
		}
	}
}

// hungUp waits until urdmad has closed the connection.
func (c *client) hungUp(t *testing.T) {
	t.Helper()
	_ = c.conn.SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := c.conn.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("urdmad does not hang up: %v", err)
	}
}
