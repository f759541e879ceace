// Package yield decides when a program yields its core to urdmad; docs/design/scheduling.md has the measurements.
// It knows no queues.
package yield

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// If both share a core, urdmad can make progress only after a yield; if they don't, a yield only costs time.
const (
	alone     = 1000  // ns: in a shorter yield no other thread ran; used if urdmad states no value
	aloneMost = 30000 // ns: maximum for the value that urdmad states
	// Multiples of that time, so that slow machines are treated like fast ones:
	postAgain = 5   // time after which a post yields again although no poll came before it
	aloneRest = 2   // time without a yield after one in which no other thread ran
	waitMost  = 200 // maximum wait; urdmad wakes the thread earlier if it completes something
)

// Alone is a time in nanoseconds that urdmad states: in a shorter yield no other thread ran.
type Alone uint32

func (a Alone) ns() int64 {
	if a == 0 {
		return alone
	}
	return min(int64(a), aloneMost)
}

// Wait returns the maximum time to wait for urdmad.
func (a Alone) Wait() time.Duration { return time.Duration(waitMost * a.ns()) }

var epoch = time.Now()

// Monotonic returns nanoseconds since the program started.
func Monotonic() int64 { return int64(time.Since(epoch)) }

// giveCore calls sched_yield(2) as an ordinary system call, so that Go's scheduler may run this thread's
// goroutines on another thread meanwhile.
func giveCore() { _, _, _ = unix.Syscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }

// Wish is urdmad's request to a polling thread.
type Wish struct {
	Every uint32 // empty polls between two yields; 0: none
	Alone Alone
}

// Poll is the state of a completion queue's polls. Several goroutines may overwrite one another's values; at
// worst this costs a yield.
type Poll struct {
	polled atomic.Bool // since the last post
	idle   atomic.Uint32
	rest   atomic.Int64
}

// Polled records a poll.
func (y *Poll) Polled() { y.polled.Store(true) }

// Found records a poll that found completions.
func (y *Poll) Found() { y.idle.Store(0) }

// Empty is called after an empty poll. It yields now and then, and reports whether it yielded and no other
// thread ran: either no thread wants the core, and Rest should follow, or the thread that wants it is in
// another scheduling group or was skipped (Linux before 6.6).
func (y *Poll) Empty(wish Wish) (nobody bool) {
	idle := y.idle.Load() + 1
	y.idle.Store(idle)
	if wish.Every == 0 || idle < wish.Every {
		return false
	}
	y.idle.Store(0)
	before := Monotonic()
	if before < y.rest.Load() {
		return false
	}
	giveCore()
	return Monotonic()-before < wish.Alone.ns()
}

// Rest suppresses yields for a while.
func (y *Poll) Rest(a Alone) { y.rest.Store(Monotonic() + aloneRest*a.ns()) }

// Post is the state of a queue pair's posts.
type Post struct {
	yielded atomic.Int64 // when the last yield ended
}

// After yields once for a burst of posts, if urdmad's worker runs on this core. What urdmad does during the yield
// must not count, because then each post of the burst would yield.
// send and recv are the queue pair's completion queues.
func (p *Post) After(send, recv *Poll, core uint32, a Alone) {
	polled := send.polled.Swap(false)
	if recv != send && recv.polled.Swap(false) {
		polled = true
	}
	if !polled && Monotonic()-p.yielded.Load() < postAgain*a.ns() {
		return
	}
	if CurrentCore() == core {
		giveCore()
	}
	p.yielded.Store(Monotonic())
}
