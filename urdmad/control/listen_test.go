package control_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"urdma/urdmad/control"
)

// TestListenKeepsOtherFiles: only a socket that nobody answers is replaced.
func TestListenKeepsOtherFiles(t *testing.T) {
	for kind, create := range map[string]func(path string) error{
		"a regular file": func(path string) error { return os.WriteFile(path, []byte("precious"), 0o600) },
		"a FIFO":         func(path string) error { return unix.Mkfifo(path, 0o600) },
		"a directory":    func(path string) error { return os.Mkdir(path, 0o700) },
		"a symbolic link": func(path string) error {
			if err := os.WriteFile(path+".target", nil, 0o600); err != nil {
				return err
			}
			return os.Symlink(path+".target", path)
		},
		"a device": func(path string) error { return unix.Mknod(path, unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))) },
	} {
		t.Run(kind, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "urdmad.sock")
			if err := create(path); err != nil {
				t.Skipf("creating %s: %v", kind, err)
			}
			before, err := os.Lstat(path)
			if err != nil {
				t.Fatal(err)
			}
			l, err := control.Listen(path, 0o600)
			if err == nil {
				l.Close()
				t.Fatalf("urdmad replaced %s by its socket", kind)
			}
			if !strings.Contains(err.Error(), path+" is "+kind) {
				t.Errorf("%q, expected it to say that %s is %s", err, path, kind)
			}
			after, err := os.Lstat(path)
			if err != nil || !os.SameFile(before, after) {
				t.Errorf("%s is gone: %v", kind, err)
			}
		})
	}
}

// TestListenReplacesDeadSocket: one that an urdmad left that was killed.
func TestListenReplacesDeadSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "urdmad.sock")
	dead, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: path, Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false)
	dead.Close()
	l, err := control.Listen(path, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
}
