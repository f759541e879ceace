package account

import (
	"os"
	"sync"
	"time"
)

// A client can make system calls on its files and pages wait for ever (FUSE,
// userfaultfd). Each then keeps a thread of ours, of which the Go runtime
// allows 10,000. So such calls are made beside the session, few at a time.

// Bounds of calls that may wait for a client, of one user and of all.
const (
	maxBlockedOfUser = 4
	maxBlocked       = 32
)

// Patience is how long a session waits for such a call, its turn included: on a busy
// machine calls that wait for nobody take a while as well.
const Patience = 5 * time.Second

// lookAgain is how often a session that waits for its turn looks whether it has come.
const lookAgain = time.Millisecond

// MaxUnclosed bounds descriptors of one user that wait to be closed.
const MaxUnclosed = 64

// Beside runs fn, which may never return, on a goroutine of its own; false if
// too many such wait already.
func (a *Account) Beside(fn func()) bool {
	mine, all := a.user.blocked.Add(1), a.of.blocked.Add(1)
	done := func() { a.user.blocked.Add(-1); a.of.blocked.Add(-1) }
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

// Within runs fn beside the session, once there is room for it, and waits for it;
// false if it did not end in time.
func (a *Account) Within(limit time.Duration, fn func()) bool {
	over, ended := time.After(limit), make(chan struct{})
	for !a.Beside(func() { defer close(ended); fn() }) {
		select {
		case <-over:
			return false
		case <-time.After(lookAgain):
		}
	}
	select {
	case <-ended:
		return true
	case <-over:
		return false
	}
}

// Closer closes one user's descriptors one after the other: closing waits for
// FUSE as well.
type Closer struct {
	mu    sync.Mutex
	queue []*os.File
	busy  bool
}

// Close closes f, which is the closer's from now on; it does not wait.
func (c *Closer) Close(f *os.File) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue = append(c.queue, f)
	if !c.busy {
		c.busy = true
		go c.run()
	}
}

func (c *Closer) run() {
	for f := c.next(); f != nil; f = c.next() {
		f.Close()
	}
}

func (c *Closer) next() *os.File {
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

// Room reports whether fewer than MaxUnclosed wait, and waits until limit for that:
// more of the user's get in only then.
func (c *Closer) Room(limit time.Duration) bool {
	for end := time.Now().Add(limit); c.full(); time.Sleep(lookAgain) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

func (c *Closer) full() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.queue) >= MaxUnclosed
}
