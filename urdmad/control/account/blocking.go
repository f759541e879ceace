package account

import (
	"io"
	"sync"
	"time"
)

// A client can make system calls on its files and pages block for ever (FUSE, userfaultfd). Each
// blocked call occupies a thread of urdmad, and the Go runtime allows 10,000 threads. So such
// calls run on goroutines of their own, few at a time.

// Limits of calls that may be blocked by clients, per user and in total.
const (
	maxBlockedOfUser = 4
	maxBlocked       = 32
)

// BlockingTimeout is how long a session waits for such a call to start and end. On a busy machine
// even calls that nothing blocks take a while.
const BlockingTimeout = 5 * time.Second

// lookAgain is the interval at which a session checks whether its call may start.
const lookAgain = time.Millisecond

// MaxUnclosed is the largest number of one user's descriptors that wait to be closed.
const MaxUnclosed = 64

// Concurrently runs fn, which may never return, on a goroutine of its own. It returns false if
// too many such calls are blocked already.
func (a *Account) Concurrently(fn func()) bool {
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

// Within runs fn on a goroutine of its own, once the limits allow it, and waits for it. It
// returns false if fn did not end within limit.
func (a *Account) Within(limit time.Duration, fn func()) bool {
	over, ended := time.After(limit), make(chan struct{})
	for !a.Concurrently(func() { defer close(ended); fn() }) {
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

// Closer closes one user's descriptors one at a time, because closing may block too (FUSE).
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

func (c *Closer) run() {
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
