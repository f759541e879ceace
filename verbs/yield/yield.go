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
	postAgain = 5000 // ns after which a post that no poll preceded yields again
	alone     = 1000 // ns: a shorter yield met nobody who wants the core
	aloneRest = 2000 // ns without a yield after such a one
)

var epoch = time.Now()

// Monotonic is nanoseconds since the program started.
func Monotonic() int64 { return int64(time.Since(epoch)) }

// giveCore is sched_yield(2), told to Go's scheduler as any system call: the
// goroutines of this thread may go on elsewhere meanwhile.
func giveCore() { _, _, _ = unix.Syscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }

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

// Empty follows a poll that found nothing; every is urdmad's wish, 0 never. It
// yields now and then, and reports that this met nobody: either nobody wants the
// core, and Rest should follow, or who wants it is of another scheduling group.
func (y *Poll) Empty(every uint32) (nobody bool) {
	idle := y.idle.Load() + 1
	y.idle.Store(idle)
	if every == 0 || idle < every {
		return false
	}
	y.idle.Store(0)
	before := Monotonic()
	if before < y.rest.Load() {
		return false
	}
	giveCore()
	return Monotonic()-before < alone
}

// Rest spares the next polls a yield.
func (y *Poll) Rest() { y.rest.Store(Monotonic() + aloneRest) }

// Post is what a queue pair remembers of its posts.
type Post struct{ yielded atomic.Int64 }

// After yields once for a burst of posts, if urdmad's worker runs on this core.
// send and recv are the queue pair's completion queues.
func (p *Post) After(send, recv *Poll, core uint32) {
	polled := send.polled.Swap(false)
	if recv != send && recv.polled.Swap(false) {
		polled = true
	}
	if !polled {
		now := Monotonic()
		if now-p.yielded.Load() < postAgain {
			return
		}
		p.yielded.Store(now)
	}
	if CurrentCore() == core {
		giveCore()
	}
}
