package verbs

import (
	"golang.org/x/sys/unix"
)

// yieldCore gives the core to whoever waits for it. A goroutine's Gosched would
// stay within this process.
func yieldCore() { _, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }

// yield does so after as many empty polls in a row as urdmad asked for: on a
// machine with few cores a spinning program may be what keeps it from running.
func (q *CQ) yield() {
	_, after, _ := q.c.bells[0].Yield()
	if q.empty++; after != 0 && q.empty >= after {
		q.empty = 0
		yieldCore()
	}
}

// yieldAfterPost does so after the first post since a poll, where the worker that
// must carry it out shares our core and has asked for it.
func (q *QP) yieldAfterPost() {
	post, _, core := q.c.bells[q.worker].Yield()
	if post == 0 || currentCore() != core {
		return
	}
	if q.sendCQ.polled.Swap(false) || q.recvCQ.polled.Swap(false) {
		yieldCore()
	}
}
