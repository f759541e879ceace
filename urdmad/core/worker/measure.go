package worker

import (
	"encoding/binary"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"urdma/urdmad/core/clock"
)

// Measure measures this machine, in about 10 ms. Other load has little influence: the shortest sleep and
// wake-up count, and only those yields that let no other thread run. KeepsCore is measured on the given
// core, or on any if that is negative.
func Measure(core int) Machine {
	found := make(chan Machine)
	go func() { // the thread's settings differ from others, so it ends with this function
		runtime.LockOSThread()                             // without unlocking, so that the thread ends
		_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) // the same as a worker's
		if core < 0 {
			core = int(currentCore())
		}
		found <- Machine{Clock: measureClock(), Yield: measureYield(), Sleep: shortest(sleepOnce), Wake: measureWake(),
			KeepsCore: keepsCore(core)}
	}()
	return <-found
}

func measureClock() Time {
	const readings = 64
	before := Now()
	for range readings - 1 {
		Now()
	}
	return (Now() - before) / readings
}

// measureYield returns the median duration of yields after which the same thread continued, by the kernel's
// count of context switches; 0 if there were almost none.
func measureYield() Time {
	const enough, least = 64, 8
	var t thread
	var single []Time
	for end := Now() + 4*clock.Millisecond; len(single) < enough && Now() < end; {
		switches := contextSwitches()
		before := Now()
		t.yield()
		after := Now()
		if contextSwitches() == switches {
			single = append(single, after-before)
		}
	}
	if len(single) < least {
		return 0
	}
	slices.Sort(single)
	return single[len(single)/2]
}

// contextSwitches returns the calling thread's number of context switches (getrusage(2)).
func contextSwitches() int64 {
	var r unix.Rusage
	if unix.Getrusage(unix.RUSAGE_THREAD, &r) != nil {
		return 0
	}
	return r.Nvcsw + r.Nivcsw
}

// shortest returns the shortest duration of several runs of once.
func shortest(once func() Time) Time {
	least := once()
	for range 15 {
		least = min(least, once())
	}
	return least
}

func sleepOnce() Time {
	before := Now()
	again(func() error { _, err := unix.Ppoll(nil, &unix.Timespec{Nsec: 1}, nil); return err })
	return Now() - before
}

// measureWake lets a second thread answer, and returns half of the round trip.
func measureWake() Time {
	there, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		return 0
	}
	defer unix.Close(there)
	back, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		return 0
	}
	defer unix.Close(back)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		runtime.LockOSThread()
		for range 16 {
			take(there)
			give(back)
		}
	}()
	least := shortest(func() Time {
		before := Now()
		give(there)
		take(back)
		return Now() - before
	})
	<-gone
	return least / 2
}

// give adds one to an eventfd; take waits until it is not 0.
func give(fd int) {
	var one [8]byte
	binary.NativeEndian.PutUint64(one[:], 1)
	again(func() error { _, err := unix.Write(fd, one[:]); return err })
}

func take(fd int) {
	var count [8]byte
	again(func() error { _, err := unix.Read(fd, count[:]); return err })
}

// again repeats a call that was interrupted by a signal.
func again(call func() error) {
	for call() == unix.EINTR {
	}
}

// A yield does not run a thread to which the kernel prefers the caller by up to 4 ms (Linux before 6.6,
// eight processors; less with fewer): the run time that the other thread had while the caller slept.
const (
	owed  = 8 * time.Millisecond
	tries = 100 // if yields do let others run, a few consecutive ones may not

	leastPs = 3 // the least number of Ps after PrepareRuntime
)

// keepsCore sleeps while a partner has the core, then yields to it. The partner counts its turns, which
// shows whether it has run. With fewer Ps than these two and others of the process may need, the Go runtime
// rather than the kernel might delay the partner.
func keepsCore(core int) bool {
	if runtime.GOMAXPROCS(0) < leastPs {
		return false
	}
	restore, err := pin(core)
	if err != nil {
		return false
	}
	defer restore()
	p := partner{ready: make(chan error)}
	go p.run(core)
	if err := <-p.ready; err != nil {
		return false
	}
	defer p.stop.Store(true)
	before := p.turns.Load()
	time.Sleep(owed)
	if p.turns.Load() == before {
		return false // a third thread had the core
	}
	end := Now() + 5*clock.Millisecond
	for range tries {
		turns := p.turns.Load()
		rawYield()
		if p.turns.Load() != turns || Now() > end {
			return false
		}
	}
	return true
}

// partner is a thread that polls and yields as a program does.
type partner struct {
	ready chan error // receives nil when it runs
	turns atomic.Uint64
	stop  atomic.Bool
}

func (p *partner) run(core int) {
	runtime.LockOSThread()
	restore, err := pin(core)
	p.ready <- err
	if err != nil {
		return
	}
	defer restore() // restored because the process's first thread does not end
	var t thread
	for !p.stop.Load() {
		p.turns.Add(1)
		t.yield() // not raw: raw, no signal could make it give its P to a garbage collection
	}
}

// pin binds the calling thread to one core until restore is called.
func pin(core int) (restore func(), err error) {
	var set, before unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return nil, err
	}
	set.Set(core)
	return func() { _ = unix.SchedSetaffinity(0, &before) }, unix.SchedSetaffinity(0, &set)
}

// rawYield keeps the P, so that only the kernel decides which thread runs. Signals of the runtime find the
// thread in the system call, where it can't be preempted: don't use it in long loops.
func rawYield() { _, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }
