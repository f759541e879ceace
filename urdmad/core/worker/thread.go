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

// thread is the locked OS thread of a worker and how the kernel schedules it.
type thread struct {
	attr      unix.SchedAttr // as the worker wants it while it is awake
	fair      bool           // SCHED_OTHER or SCHED_BATCH: slices mean something
	shortened bool
	refused   error  // what the kernel did not allow; the worker runs without
	short     uint64 // the slice while asleep, ns; 0: the same
}

// setUp locks the caller to its thread and applies the policy to it.
func (t *thread) setUp(p *Policy) error {
	runtime.LockOSThread()
	// Timed sleeps are to end when they should: the default slack is 50 µs.
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0); err != nil { // a seccomp profile
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
		return nil // an administrator chose a class; leave it
	}
	if attr.Runtime != 0 { // 0: such threads have no slice of their own (before Linux 6.12)
		t.short = uint64(p.SleepSlice)
	}
	if p.Nice == 0 && p.Slice == 0 {
		return nil
	}
	if p.Nice != 0 {
		t.attr.Nice = int32(p.Nice)
	}
	if p.Slice != 0 {
		t.attr.Runtime = uint64(p.Slice)
	}
	err = unix.SchedSetAttr(0, &t.attr, 0)
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		t.refused = errors.Join(t.refused, fmt.Errorf("worker: polling.nice %d: %w", p.Nice, err))
		t.attr.Nice = attr.Nice
		err = unix.SchedSetAttr(0, &t.attr, 0)
	}
	if err != nil {
		return fmt.Errorf("worker: nice %d, slice %d ns: %w", t.attr.Nice, p.Slice, err)
	}
	return nil
}

// shorten asks for the sleeper's slice, or gives it back. A refusal changes
// nothing that matters: the wake-up is then a little later.
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

// yield gives the core away once. The blocking form of the call lets the
// garbage collector go on while another process has the core.
func (t *thread) yield() {
	_, _, _ = unix.Syscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
}

// reserved says that there is a P for every worker and that the runtime may
// interrupt a sleeping one.
var reserved atomic.Bool

// rarely is the percentage of garbage beside what is in use, as GOGC counts it, and
// mostGarbage bounds it where more is in use than a single worker and its ports take.
const (
	rarely      = 800
	mostGarbage = 64 << 20
)

// PrepareRuntime sets Go's runtime up for this many workers; call it once, before
// they run. GOMAXPROCS and GOGC in the environment win.
//
// GOMAXPROCS grows so that a worker that comes back from a sleep doesn't compete
// for a P with the daemon's other goroutines: beside two busy ones on two cores
// that cost 330 µs in the median, and with it 27 µs. Collections get rare,
// because each stops the workers until every other thread of the process has
// had a core.
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

// LimitGarbage is for when all that stays for ever is there, above all the buffers of ports
// and workers: eight times those would be hundreds of megabytes with several workers. GOGC in
// the environment wins.
func LimitGarbage() {
	if os.Getenv("GOGC") != "" {
		return
	}
	runtime.GC()
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	debug.SetGCPercent(garbagePercent(live[0].Value.Uint64()))
}

// garbagePercent is at least as much as is in use.
func garbagePercent(live uint64) int {
	return int(max(100, min(rarely, mostGarbage*100/max(1, live))))
}
