package control_test

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestEmptyMessage: a message of no bytes ends its session, and the descriptors
// that came with it are closed.
func TestEmptyMessage(t *testing.T) {
	r := start(t)
	if _, err := fetch(r.socket); err != nil { // what is opened once is open
		t.Fatal(err)
	}
	before := openFiles(t)
	for range 100 {
		c, err := dial(r.socket)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := c.conn.SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		fd := open(t, "/dev/null")
		_ = raw.Control(func(s uintptr) { sendNothing(t, int(s), fd, fd, fd, fd) })
		unix.Close(fd)
		if _, err := c.conn.Read(make([]byte, 64)); err == nil {
			t.Fatal("urdmad answered a message of no bytes")
		}
		c.conn.Close()
	}
	for range 6000 {
		if openFiles(t) <= before {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Errorf("%d files are open, %d before", openFiles(t), before)
}
