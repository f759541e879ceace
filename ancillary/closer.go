package ancillary

import (
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"time"
)

// MaxUnclosed is the largest number of descriptors that wait to be closed before no more are received.
const MaxUnclosed = 64

// lookAgain is the interval at which Room looks whether there is room.
const lookAgain = time.Millisecond

// Closer closes the descriptors of one sender (a user, a socket's peers) one at a time on a goroutine of its own,
// because the last close takes as long as their owner likes (FUSE, SO_LINGER).
type Closer struct {
	mu    sync.Mutex
	queue []io.Closer
	busy  bool
}

// Close takes over f and closes it without waiting.
func (c *Closer) Close(f io.Closer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue = append(c.queue, f)
	if !c.busy {
		c.busy = true
		go c.run()
	}
}

// maxClosing is the largest number of Closers that close at a time, each on a thread. A process may have many users'
// IDs in turn, and the Go runtime ends a program with 10,000 threads.
const maxClosing = 1024

var closing = make(chan struct{}, maxClosing)

func (c *Closer) run() {
	closing <- struct{}{}
	defer func() { <-closing }()
	for f := c.next(); f != nil; f = c.next() {
		f.Close()
	}
}

func (c *Closer) next() io.Closer {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.queue) == 0 {
		c.busy = false
		return nil
	}
	f := c.queue[0]
	c.queue = c.queue[1:]
	return f
}

// Room reports whether fewer than MaxUnclosed descriptors wait to be closed. It waits up to limit
// for that. More descriptors of the user are accepted only then.
func (c *Closer) Room(limit time.Duration) bool {
	for end := time.Now().Add(limit); c.Full(); time.Sleep(lookAgain) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// Full reports whether there is no room now.
func (c *Closer) Full() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.queue) >= MaxUnclosed
}

// Idle reports whether everything is closed.
func (c *Closer) Idle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.busy
}

// HangUp closes a connection without waiting. Descriptors that the peer has sent and nobody has received are closed
// with the socket, so if there are some, the Closer does it.
func (c *Closer) HangUp(conn *net.UnixConn) error {
	_, _ = conn.CloseRead(), conn.CloseWrite() // for the peer, the connection ends now: it can't send any more
	if waiting(conn) {
		f, err := conn.File() // so that no reader of conn is the last to close the socket
		if err != nil {
			c.Close(conn)
			return nil
		}
		defer c.Close(f)
	}
	return conn.Close()
}

// Unlisten closes a listener without waiting. Connections that nobody has accepted are closed with it, and descriptors
// that were sent over them.
func (c *Closer) Unlisten(l *net.UnixListener) error {
	if f, err := l.File(); err == nil {
		defer c.Close(f)
	}
	return l.Close()
}

// waiting reports whether a socket's receive queue has descriptors (scm_fds, since Linux 5.6).
func waiting(conn *net.UnixConn) (found bool) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return false
	}
	_ = raw.Control(func(fd uintptr) {
		text, err := os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", fd))
		found = err != nil || !strings.Contains(string(text), "\nscm_fds: 0\n")
	})
	return found
}
