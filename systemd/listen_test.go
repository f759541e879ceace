package systemd

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func sock(t *testing.T, kind int, listen bool) *os.File {
	t.Helper()
	fd, err := unix.Socket(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "s")
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: path}); err != nil {
		t.Fatal(err)
	}
	if listen {
		if err := unix.Listen(fd, 8); err != nil {
			t.Fatal(err)
		}
	}
	return os.NewFile(uintptr(fd), path)
}

func TestChoose(t *testing.T) {
	plain := func(t *testing.T) *os.File {
		f, err := os.Open("/dev/null")
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	tcp := func(t *testing.T) *os.File {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		f, err := l.(*net.TCPListener).File()
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	good := func(t *testing.T) *os.File { return sock(t, unix.SOCK_SEQPACKET, true) }
	for _, x := range []struct {
		name  string
		files []func(*testing.T) *os.File
		wrong string // part of the error; "" for no error
	}{
		{"none", nil, ""},
		{"the one", []func(*testing.T) *os.File{good}, ""},
		{"a stream", []func(*testing.T) *os.File{func(t *testing.T) *os.File { return sock(t, unix.SOCK_STREAM, true) }},
			"type 1"},
		{"one that doesn't listen", []func(*testing.T) *os.File{func(t *testing.T) *os.File {
			return sock(t,
				unix.SOCK_SEQPACKET, false)
		}}, "listening 0"},
		{"two", []func(*testing.T) *os.File{good, good}, "second"},
		{"a file", []func(*testing.T) *os.File{plain}, "no socket"},
		{"TCP", []func(*testing.T) *os.File{tcp}, "type 1"},
		{"the one and a stranger", []func(*testing.T) *os.File{good, plain}, "no socket"},
	} {
		t.Run(x.name, func(t *testing.T) {
			var files []*os.File
			for _, make := range x.files {
				files = append(files, make(t))
			}
			l, err := choose(files)
			if (err != nil) != (x.wrong != "") || err != nil && !strings.Contains(err.Error(), x.wrong) {
				t.Fatalf("error %v, expected one with %q", err, x.wrong)
			}
			if (l != nil) != (len(files) > 0 && x.wrong == "") {
				t.Fatalf("listener %v", l)
			}
			for _, f := range files {
				if _, err := f.Stat(); err == nil {
					t.Errorf("%s was left open", f.Name())
				}
			}
			if l == nil {
				return
			}
			path := l.Addr().String()
			c, err := net.Dial("unixpacket", path)
			if err != nil {
				t.Fatal(err)
			}
			c.Close()
			l.Close()
			if _, err := os.Stat(path); err != nil {
				t.Errorf("the socket's file, which is systemd's, went away: %v", err)
			}
		})
	}
}

// TestActivated runs a process with descriptors that are passed as systemd passes them.
func TestActivated(t *testing.T) {
	if os.Getenv("URDMA_TEST_ACTIVATED") != "" {
		l, err := Listener()
		if err != nil || l == nil {
			t.Fatalf("listener %v, error %v", l, err)
		}
		if os.Getenv("LISTEN_FDS") != "" {
			t.Error("LISTEN_FDS is left for processes we start")
		}
		c, err := l.AcceptUnix()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write([]byte("hello")); err != nil {
			t.Fatal(err)
		}
		return
	}
	f := sock(t, unix.SOCK_SEQPACKET, true)
	defer f.Close()
	path := f.Name()
	// The client connects before the daemon runs.
	c, err := net.Dial("unixpacket", path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	child := exec.Command("/bin/sh", "-c",
		`LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES=urdmad.socket exec "$0" -test.run '^TestActivated$'`, os.Args[0])
	child.Env = append(os.Environ(), "URDMA_TEST_ACTIVATED=1")
	child.ExtraFiles = []*os.File{f}
	if out, err := child.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	b := make([]byte, 16)
	n, err := c.Read(b)
	if err != nil || string(b[:n]) != "hello" {
		t.Errorf("read %q, %v", b[:n], err)
	}
}
