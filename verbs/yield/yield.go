// Package yield decides when a program gives its core to urdmad;
// bench/floor/README.md measured why. It knows no queues.
package yield

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Where both share a core, what the program waits for can only happen after a
// yield; where they don't, a yield finds nobody and costs.
const (
	alone     = 1000  // ns: a shorter yield met nobody who wants the core; for a urdmad that doesn't say
	aloneMost = 30000 // ns
	// Multiples of that, by which slow machines are told from fast ones:
	postAgain = 5   // after which a post that no poll preceded yields again
	aloneRest = 2   // without a yield after one that met nobody
	waitMost  = 200 // urdmad wakes us before, if it completes something
)

// Alone is a number of nanoseconds, as urdmad tells it: a yield that took less met
// nobody who wants the core.
type Alone uint32

func (a Alone) ns() int64 {
	if a == 0 {
		return alone
	}
	return min(int64(a), aloneMost)
}

// Wait is how long to wait for urdmad at most.
func (a Alone) Wait() time.Duration { return time.Duration(waitMost * a.ns()) }

var epoch = time.Now()

// Monotonic is nanoseconds since the program started.
func Monotonic() int64 { return int64(time.Since(epoch)) }

// giveCore is sched_yield(2), told to Go's scheduler as any system call: the
// goroutines of this thread may go on elsewhere meanwhile.
func giveCore() { _, _, _ = unix.Syscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }

// Wish is what urdmad asks of a polling thread.
type Wish struct {
	Every uint32 // empty polls between two yields; 0: none
	Alone Alone
}

// Poll is what a completion queue remembers of its polls. Several goroutines may
// overwrite one another's notes, which costs a yield at most.
type Poll struct {
	polled atomic.Bool // since the last post
	idle   atomic.Uint32
	rest   atomic.Int64
}

// Polled notes a poll.
func (y *Poll) Polled() { y.polled.Store(true) }

// Found notes a poll that found completions.
func (y *Poll) Found() { y.idle.Store(0) }

// Empty follows a poll that found nothing. It yields now and then, and reports that
// this met nobody: either nobody wants the core, and Rest should follow, or the thread that wants
// it is of another scheduling group, or was passed over (Linux before 6.6).
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

// Rest spares the next polls a yield.
func (y *Poll) Rest(a Alone) { y.rest.Store(Monotonic() + aloneRest*a.ns()) }

// Post is what a queue pair remembers of its posts.
type Post struct{ yielded atomic.Int64 }

// After yields once for a burst of posts, if urdmad's worker runs on this core.
// send and recv are the queue pair's completion queues.
func (p *Post) After(send, recv *Poll, core uint32, a Alone) {
	polled := send.polled.Swap(false)
	if recv != send && recv.polled.Swap(false) {
		polled = true
	}
	if !polled {
		now := Monotonic()
		if now-p.yielded.Load() < postAgain*a.ns() {
			return
		}
		p.yielded.Store(now)
	}
	if CurrentCore() == core {
		giveCore()
	}
}
