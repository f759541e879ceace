package control

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"urdma/urdmad/control/process"
)

// A client can make system calls on its files and pages wait for ever (FUSE,
// userfaultfd). Each then keeps a thread of ours, of which the Go runtime
// allows 10,000. So such calls are made beside the session, few at a time.

// Bounds of calls that may wait for a client, of one user and of all.
const (
	maxBlockedOfUser = 4
	maxBlocked       = 32
)

// patience is how long a session waits for such a call.
const patience = time.Second

// maxUnclosed bounds descriptors of one user that wait to be closed.
const maxUnclosed = 64

// beside runs fn, which may never return, on a goroutine of its own; false if
// too many such wait already.
func (a *account) beside(fn func()) bool {
	mine, all := a.user.blocked.Add(1), a.s.blocked.Add(1)
	done := func() { a.user.blocked.Add(-1); a.s.blocked.Add(-1) }
	if mine > maxBlockedOfUser || all > maxBlocked {
		done()
		return false
	}
	go func() {
		defer done()
		fn()
	}()
	return true
}

// within runs fn beside the session and waits for it; false if it did not end
// in time.
func (a *account) within(limit time.Duration, fn func()) bool {
	ended := make(chan struct{})
	if !a.beside(func() { defer close(ended); fn() }) {
		return false
	}
	select {
	case <-ended:
		return true
	case <-time.After(limit):
		return false
	}
}

// closer closes one user's descriptors one after the other: closing waits for
// FUSE as well.
type closer struct {
	mu    sync.Mutex
	queue []*os.File
	busy  bool
}

func (c *closer) close(f *os.File) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue = append(c.queue, f)
	if !c.busy {
		c.busy = true
		go c.run()
	}
}

func (c *closer) run() {
	for f := c.next(); f != nil; f = c.next() {
		f.Close()
	}
}

func (c *closer) next() *os.File {
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

// stuck reports whether so many wait that the user gets no further ones in.
func (c *closer) stuck() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.queue) >= maxUnclosed
}

const maxLine = 256 // bytes of a command line that are kept

// readCommandLine has the client's command line read; the kernel takes it from
// the client's pages.
func (a *account) readCommandLine() {
	if a.owner.pid <= 0 {
		return
	}
	a.beside(func() {
		line := commandLine(fmt.Sprintf("/proc/%d/cmdline", a.owner.pid))
		a.owner.line.Store(&line)
	})
}

// commandLine reads a process's arguments, separated by spaces; what cannot be
// read is not shown.
func commandLine(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	b := make([]byte, maxLine)
	n, _ := f.Read(b)
	return process.Printable(strings.TrimRight(strings.ReplaceAll(string(b[:n]), "\x00", " "), " "))
}

// commandLine is what was read so far.
func (o *owner) commandLine() string {
	if line := o.line.Load(); line != nil {
		return *line
	}
	return ""
}
