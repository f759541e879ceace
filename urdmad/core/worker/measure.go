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

// Measure finds out what this machine is like, in about 10 ms. What others do
// meanwhile changes little: of sleeps and wake-ups the shortest counts, and of
// yields only those that let nobody run. The last question is put on one core, the
// one given, or any if that is negative.
func Measure(core int) Machine {
	found := make(chan Machine)
	go func() { // the thread has settings of its own, so it ends with this function
		runtime.LockOSThread()                             // and never unlock
		_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) // as a worker's
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

// measureYield is the median of yields after which the same thread went on, as
// the kernel counts its switches; 0 if there were hardly any.
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

// contextSwitches are those of the calling thread (getrusage(2)).
func contextSwitches() int64 {
	var r unix.Rusage
	if unix.Getrusage(unix.RUSAGE_THREAD, &r) != nil {
		return 0
	}
	return r.Nvcsw + r.Nivcsw
}

// shortest of some runs of what says how long it took.
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

// measureWake has a second thread answer, and takes half of the way there and
// back.
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

// give adds one to an eventfd, take waits until it is not 0.
func give(fd int) {
	var one [8]byte
	binary.NativeEndian.PutUint64(one[:], 1)
	again(func() error { _, err := unix.Write(fd, one[:]); return err })
}

func take(fd int) {
	var count [8]byte
	again(func() error { _, err := unix.Read(fd, count[:]); return err })
}

// again repeats a call that a signal interrupted.
func again(call func() error) {
	for call() == unix.EINTR {
	}
}

// The kernel lets a yield pass over a thread that it owes 4 ms (Linux before 6.6,
// eight processors; less with fewer), and owes it what another has had while it
// slept.
const (
	owed  = 8 * time.Millisecond
	tries = 100 // where yields do let others run, a few in a row may not

	leastPs = 3 // PrepareRuntime's least
)

// keepsCore sleeps while a partner has the core, then yields to it. The partner
// counts its turns: one more, and it has run. With fewer Ps than these two and others
// of the process may want, it might not be the kernel that keeps the partner waiting.
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
		return false // somebody else had the core
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
	ready chan error // nil: it runs
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
	defer restore() // the process's first thread never ends
	var t thread
	for !p.stop.Load() {
		p.turns.Add(1)
		t.yield() // no signal can make the raw form give its P to a collection
	}
}

// pin binds the calling thread to one core until restore.
func pin(core int) (restore func(), err error) {
	var set, before unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return nil, err
	}
	set.Set(core)
	return func() { _ = unix.SchedSetaffinity(0, &before) }, unix.SchedSetaffinity(0, &set)
}

// rawYield keeps the P, so that only the kernel decides who runs. Signals of the
// runtime find the thread in the call, where it can't be preempted: not for long loops.
func rawYield() { _, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }
