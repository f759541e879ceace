package memif

import (
	"errors"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestForeignInterrupts: a peer can't have us write to a socket that leads anywhere but to
// itself.
func TestForeignInterrupts(t *testing.T) {
	dir := t.TempDir()
	socket := func(kind int) int {
		fd, err := unix.Socket(unix.AF_UNIX, kind, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Close(fd) })
		return fd
	}
	service := func(name string, kind int) (bound, connected int) {
		at := &unix.SockaddrUnix{Name: filepath.Join(dir, name)}
		bound, connected = socket(kind), socket(kind)
		if err := unix.Bind(bound, at); err != nil {
			t.Fatal(err)
		}
		if kind == unix.SOCK_STREAM {
			if err := unix.Listen(bound, 1); err != nil {
				t.Fatal(err)
			}
		}
		if err := unix.Connect(connected, at); err != nil {
			t.Fatal(err)
		}
		return bound, connected
	}
	stream, connected := service("stream", unix.SOCK_STREAM)
	accepted, _, err := unix.Accept(stream)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(accepted) })
	datagrams, sender := service("datagrams", unix.SOCK_DGRAM)
	for name, fd := range map[string]int{"listens": stream, "connected": connected, "accepted": accepted,
		"bound": datagrams, "connected datagrams": sender,
		"unconnected": socket(unix.SOCK_STREAM)} {
		if in, err := openInterrupt(fd, true); err == nil {
			t.Errorf("%s: taken as %+v", name, in)
		}
	}
	ours, theirs, err := newInterrupt()
	if err != nil {
		t.Fatal(err)
	}
	defer ours.close()
	defer unix.Close(theirs)
	if in, err := openInterrupt(theirs, true); err != nil || !in.socket {
		t.Errorf("of a socketpair: %+v, %v", in, err)
	}
}

// TestDrain: draining takes all kicks, does not wait, and allocates nothing.
func TestDrain(t *testing.T) {
	ours, theirs, err := newInterrupt()
	if err != nil {
		t.Fatal(err)
	}
	defer ours.close()
	peer := interrupt{fd: theirs, socket: true}
	defer peer.close()
	if n := testing.AllocsPerRun(100, func() {
		for range 100 {
			peer.kick()
		}
		if !ours.drain() || !ours.drain() {
			t.Error("there are descriptors")
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
	if _, err := unix.Read(ours.fd, make([]byte, 1)); !errors.Is(err, unix.EAGAIN) {
		t.Errorf("after draining: %v, expected %v", err, unix.EAGAIN)
	}
}
