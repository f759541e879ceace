package memif

import (
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestForeignInterrupts: a peer's interrupt can't be a socket, which could lead anywhere, and could bring descriptors.
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
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeFD(pair[0]); closeFD(pair[1]) })
	for name, fd := range map[string]int{"listens": stream, "connected": connected, "accepted": accepted,
		"bound": datagrams, "connected datagrams": sender,
		"unconnected": socket(unix.SOCK_STREAM), "of a pair": pair[0]} {
		if in, err := openInterrupt(fd, true); err == nil {
			t.Errorf("%s: taken as %+v", name, in)
		}
	}
	ours, err := newInterrupt(false)
	if err != nil {
		t.Fatal(err)
	}
	defer ours.close()
	if _, err := openInterrupt(ours.fd, false); err != nil {
		t.Error(err)
	}
}
