package worker

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// thread is a worker's locked OS thread and its scheduling parameters.
type thread struct {
	attr      unix.SchedAttr // the scheduling attributes while the worker is awake
	fair      bool           // SCHED_OTHER or SCHED_BATCH: slices have an effect
	shortened bool
	refused   error  // settings that the kernel refused; the worker runs without them
	short     uint64 // slice while asleep, ns; 0: the same as awake
}

// setUp locks the caller to its thread and applies the policy.
func (t *thread) setUp(p *Policy) error {
	runtime.LockOSThread()
	// Timed sleeps must end on time: the default slack is 50 µs.
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0); err != nil { // fails under some seccomp profiles
		t.refused = fmt.Errorf("worker: PR_SET_TIMERSLACK, so timed sleeps end up to 50 µs late: %w", err)
	}
	if p.Core >= 0 {
		var set unix.CPUSet
		set.Set(p.Core)
		if err := unix.SchedSetaffinity(0, &set); err != nil {
			return fmt.Errorf("worker: pinning to core %d: %w", p.Core, err)
		}
	}
	return t.classify(p)
}

func (t *thread) classify(p *Policy) error {
	attr, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		return fmt.Errorf("worker: reading the scheduling class: %w", err)
	}
	t.attr = *attr
	t.fair = attr.Policy == unix.SCHED_NORMAL || attr.Policy == unix.SCHED_BATCH
	if !t.fair {
		return nil // an administrator chose the class; it is not changed
	}
	if attr.Runtime != 0 { // 0: threads have no slice of their own (before Linux 6.12)
		t.short = uint64(p.SleepSlice)
	}
	if p.Nice == 0 {
		return nil
	}
	t.attr.Nice = int32(p.Nice)
	err = unix.SchedSetAttr(0, &t.attr, 0)
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		t.refused = errors.Join(t.refused, fmt.Errorf("worker: polling.nice %d: %w", p.Nice, err))
		t.attr.Nice = attr.Nice
		return nil
	}
	if err != nil {
		return fmt.Errorf("worker: nice %d: %w", p.Nice, err)
	}
	return nil
}

// shorten sets the slice for sleeping, or restores the normal one. If the kernel refuses, wake-ups are only
// a little later.
func (t *thread) shorten(on bool) {
	if !t.fair || t.short == 0 || t.shortened == on {
		return
	}
	attr := t.attr
	if on {
		attr.Runtime = t.short
	}
	if unix.SchedSetAttr(0, &attr, 0) != nil {
		t.short = 0
	}
	t.shortened = on
}

// yield yields the core once. It is not a raw system call, so that the garbage collector can continue while
// another process has the core.
func (t *thread) yield() {
	_, _, _ = unix.Syscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
}

// reserved says that there is a P for every worker and that the runtime may interrupt a sleeping worker.
var reserved atomic.Bool

// rarely is the GOGC percentage for one worker; mostGarbage bounds the garbage if more memory is in use
// than a single worker and its ports need.
const (
	rarely      = 800
	mostGarbage = 64 << 20
)

// PrepareRuntime configures Go's runtime for this many workers; call it once, before they run. GOMAXPROCS
// and GOGC in the environment take precedence.
//
// GOMAXPROCS is increased so that a worker that ends a sleep doesn't compete for a P with the daemon's
// other goroutines: with two busy goroutines on two cores, a wake-up took 330 µs in the median without
// this, and 27 µs with it. Garbage collections become rare, because each stops the workers until every
// other thread of the process has been scheduled.
func PrepareRuntime(workers int) {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), runtime.NumCPU()+workers+1))
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(rarely)
	}
	signals := !strings.Contains(os.Getenv("GODEBUG"), "asyncpreemptoff=1")
	reserved.Store(signals && runtime.GOMAXPROCS(0) > workers)
}

// LimitGarbage is called when all permanent memory is allocated, above all the buffers of ports and
// workers: garbage of eight times that would be hundreds of megabytes with several workers. GOGC in the
// environment takes precedence.
func LimitGarbage() {
	if os.Getenv("GOGC") != "" {
		return
	}
	runtime.GC()
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	debug.SetGCPercent(garbagePercent(live[0].Value.Uint64()))
}

// garbagePercent returns the GOGC percentage, at least 100, for this much memory in use.
func garbagePercent(live uint64) int {
	return int(max(100, min(rarely, mostGarbage*100/max(1, live))))
}
