package account

import "time"

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
