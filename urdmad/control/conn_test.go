package control

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"urdma/ancillary"
	"urdma/ancillary/ancillarytest"
)

// TestReadLate: a request that came in time counts, however late it is read. Nothing
// at all ends the wait.
func TestReadLate(t *testing.T) {
	client, ours := pair(t)
	c, buf := newConn(ours, &ancillary.Closer{}), make([]byte, 16)
	past := time.Now().Add(-time.Second)
	if err := c.SetReadDeadline(past); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Receive(buf); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("%d bytes, %v, though nothing was sent", n, err)
	}
	if _, err := client.Write([]byte("HELLO")); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Receive(buf); err != nil || string(buf[:n]) != "HELLO" {
		t.Fatalf("%q, %v", buf[:n], err)
	}
	client.Close()
	if err := c.SetReadDeadline(past); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Receive(buf); !errors.Is(err, errHangUp) {
		t.Fatalf("%v", err)
	}
}

// pair are the two ends of a control socket.
func pair(t *testing.T) (client, ours *net.UnixConn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]*net.UnixConn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "control socket")
		c, err := net.FileConn(f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		ends[i] = c.(*net.UnixConn)
	}
	return ends[0], ends[1]
}

// TestUnpolledDescriptor: a client's descriptor does not get into the epoll set of all of urdmad's sockets, also if it
// is non-blocking. The kernel holds the set's lock until the file's owner has answered poll(2) (FUSE).
func TestUnpolledDescriptor(t *testing.T) {
	client, ours := pair(t)
	c, buf := newConn(ours, &ancillary.Closer{}), make([]byte, 16)
	raw, err := client.File()
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	event, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	ancillarytest.Send(t, int(raw.Fd()), event)
	if _, err := c.Receive(buf); err != nil {
		t.Fatal(err)
	}
	f := c.TakeFile()
	sets, err := filepath.Glob("/proc/self/fdinfo/*")
	if f == nil || err != nil || len(sets) == 0 {
		t.Fatal(f, sets, err)
	}
	watched := regexp.MustCompile(fmt.Sprintf(`(?m)^tfd: +%d `, f.Fd()))
	for _, set := range sets {
		if b, _ := os.ReadFile(set); watched.Match(b) {
			t.Errorf("%s: %s", set, b)
		}
	}
	f.Close()
}

// TestFullCloser: as long as too many of a user's descriptors wait to be closed, requests without descriptors are
// received, and others later.
func TestFullCloser(t *testing.T) {
	client, ours := pair(t)
	var closer ancillary.Closer
	c, buf, stuck := newConn(ours, &closer), make([]byte, 16), make(blocks)
	for range ancillary.MaxUnclosed + 1 {
		closer.Close(stuck)
	}
	if !closer.Full() {
		t.Fatal("the closer has room")
	}
	if _, err := client.Write([]byte("plain")); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Receive(buf); err != nil || string(buf[:n]) != "plain" {
		t.Fatalf("%q, %v", buf[:n], err)
	}
	if _, _, err := client.WriteMsgUnix([]byte("more"), unix.UnixRights(0), nil); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Receive(buf); err == nil {
		t.Errorf("%q was received", buf[:n])
	}
	close(stuck)
	if n, err := c.Receive(buf); err != nil || string(buf[:n]) != "more" {
		t.Errorf("%q, %v", buf[:n], err)
	}
	c.DropFiles()
}

// TestLateClient: descriptors of a client that connects while urdmad ends do not hold it up.
func TestLateClient(t *testing.T) {
	client, ours := pair(t)
	raw, err := client.File()
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	ancillarytest.Send(t, int(raw.Fd()), ancillarytest.SlowToClose(t))
	s := Server{}
	s.Close()
	started := make(chan struct{})
	go func() {
		defer close(started)
		s.start(ours)
	}()
	select {
	case <-started:
	case <-time.After(time.Minute):
		t.Fatal("urdmad waits")
	}
}

// blocks can't be closed before the channel is.
type blocks chan struct{}

func (b blocks) Close() error { <-b; return nil }
