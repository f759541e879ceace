package verbs

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// When a program gives its core to urdmad: bench/floor/README.md measured why.
// Where both share a core, what the program waits for can only happen after a
// yield; where they don't, a yield finds nobody and costs.
const (
	postAgain = 5000 // ns after which a post that no poll preceded yields again
	alone     = 1000 // ns: a shorter yield met nobody who wants the core
	aloneRest = 2000 // ns without a yield after such a one
)

var epoch = time.Now()

// monotonic is nanoseconds since the program started.
func monotonic() int64 { return int64(time.Since(epoch)) }

// giveCore is sched_yield(2), told to Go's scheduler as any system call: the
// goroutines of this thread may go on elsewhere meanwhile.
func giveCore() { _, _, _ = unix.Syscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }

// pollYield is what a completion queue remembers of its polls. Several
// goroutines may overwrite one another's notes, which costs a yield at most.
type pollYield struct {
	polled atomic.Bool // since the last post
	idle   atomic.Uint32
	rest   atomic.Int64
}

func (y *pollYield) found() { y.idle.Store(0) }

// empty follows a poll that found nothing; every is urdmad's wish, 0 never.
func (y *pollYield) empty(every uint32) {
	idle := y.idle.Load() + 1
	y.idle.Store(idle)
	if every == 0 || idle < every {
		return
	}
	y.idle.Store(0)
	before := monotonic()
	if before < y.rest.Load() {
		return
	}
	giveCore()
	if monotonic()-before < alone {
		y.rest.Store(before + aloneRest)
	}
}

// yieldAfterPost yields once for a burst of posts, if urdmad's worker runs on
// this core.
func (q *QP) yieldAfterPost(core uint32) {
	polled := q.sendCQ.yield.polled.Swap(false)
	if q.recvCQ != q.sendCQ && q.recvCQ.yield.polled.Swap(false) {
		polled = true
	}
	if !polled {
		now := monotonic()
		if now-q.yielded.Load() < postAgain {
			return
		}
		q.yielded.Store(now)
	}
	if currentCore() == core {
		giveCore()
	}
}
