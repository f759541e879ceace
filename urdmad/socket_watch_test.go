package main

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestSocketRemoved: if its socket, directory or tree is removed, urdmad makes it again, every time.
func TestSocketRemoved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	src := written(t, dir, "")
	stop := served(t, src)
	socket, tree := filepath.Join(dir, "urdmad.sock"), filepath.Join(dir, "urdmad.sysfs", "class", "infiniband", "urdma0")
	for _, gone := range []string{socket, socket, dir, socket} {
		if err := os.RemoveAll(gone); err != nil && !errors.Is(err, unix.ENOTEMPTY) { // urdmad was faster
			t.Fatal(err)
		}
		for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
			_, err := os.Stat(tree)
			if c, refused := net.Dial("unixpacket", socket); err == nil && refused == nil {
				c.Close()
				break
			}
			if time.Now().After(end) {
				t.Fatalf("%s was removed, and nobody made it anew: %v", gone, err)
			}
		}
		if c, status := greet(t, socket); status != 0 {
			t.Fatal(status)
		} else {
			c.Close()
		}
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*.s*s*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// TestSocketCannotBeMade: a urdmad that can't make its removed socket again keeps trying.
func TestSocketCannotBeMade(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	served(t, written(t, dir, ""))
	obstacle := dir + ".new"
	if err := os.Symlink("/nowhere/at/all", obstacle); err != nil {
		t.Fatal(err)
	}
	if err := unix.Renameat2(unix.AT_FDCWD, obstacle, unix.AT_FDCWD, dir, unix.RENAME_EXCHANGE); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(obstacle); err != nil { // the directory
		t.Fatal(err)
	}
	time.Sleep(200 * time.Millisecond) // urdmad has failed at least once
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	tree := filepath.Join(dir, "urdmad.sysfs", "class", "infiniband", "urdma0")
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		_, err := os.Stat(tree)
		if c, refused := net.Dial("unixpacket", filepath.Join(dir, "urdmad.sock")); err == nil && refused == nil {
			c.Close()
			return
		}
		if time.Now().After(end) {
			t.Fatalf("nobody made the socket and its tree anew: %v", err)
		}
	}
}

// TestSocketReplaced: a urdmad does not touch a file that another process has put in its socket's place.
func TestSocketReplaced(t *testing.T) {
	dir := t.TempDir()
	stop := served(t, written(t, dir, ""))
	socket := filepath.Join(dir, "urdmad.sock")
	other, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: socket + ".new", Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	other.SetUnlinkOnClose(false)
	defer other.Close()
	theirs, err := os.Lstat(socket + ".new")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(socket+".new", socket); err != nil {
		t.Fatal(err)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if now, err := os.Lstat(socket); err != nil || !os.SameFile(now, theirs) {
		t.Errorf("the other process's socket: %v, %v", now, err)
	}
}
