package worker

import (
	"errors"
	"sync"
	"sync/atomic"

	"urdma/urdmad/core/clock"
)

// Loop is what a worker runs. All calls come on the worker's thread.
type Loop interface {
	// Turn does what there is to do at now. busy means there was something;
	// deadline is when the next timer is due.
	Turn(now Time) (busy bool, deadline Time)
	// PrepareSleep asks others to wake the worker from now on (sleeping flags,
	// interrupts) and then looks once more: ok is false when work has appeared,
	// and then everything is undone already. Otherwise out is fds with the
	// descriptors to wait for appended, and timed says that some source of work
	// can't wake anybody, so the sleep must be short.
	PrepareSleep(fds []int) (out []int, timed, ok bool)
	// Woke undoes PrepareSleep after each sleep.
	Woke()
}

// Hooks are optional calls on the worker's thread.
type Hooks struct {
	Begin func() error     // before the first turn, for rte_thread_register and the like
	End   func()           // after the last turn
	Moved func(core int32) // the worker now runs on this core (-1: unknown)
	// Crowded reports whether somebody who waits for the worker is known to want
	// this core. It is asked after a yield that met nobody: a yield meets only
	// threads of the worker's own scheduling group (sched(7), autogroup).
	Crowded func(core int32) bool
}

// Worker runs one Loop. Make it with New, start it with Start or Run.
type Worker struct {
	loop   Loop
	policy Policy
	hooks  Hooks
	bell   *bell
	thread thread
	ladder ladder
	counts counters
	fds    []int
	core   int32
	coreAt Time // when core was asked for
	place  place

	stopping atomic.Bool
	once     sync.Once
	ready    chan error // what setting up came to
	done     chan struct{}
	err      error
}

// ErrStarted is returned by a second Run or Start, ErrStopped by Watch and
// Unwatch of a worker that has ended.
var (
	ErrStarted = errors.New("worker: already started")
	ErrStopped = errors.New("worker: stopped")
)

// New prepares a worker; it has no thread yet.
func New(loop Loop, p Policy, h Hooks) (*Worker, error) {
	if err := p.validate(); err != nil {
		return nil, err
	}
	b, err := newBell()
	if err != nil {
		return nil, err
	}
	return &Worker{loop: loop, policy: p, hooks: h, bell: b, fds: make([]int, 0, 16), core: -2,
		ready: make(chan error, 1), done: make(chan struct{})}, nil
}

// Start runs the loop in a goroutine on a thread of its own. It returns when the
// first turn is about to come, or with the error that keeps it from running.
func (w *Worker) Start() error {
	err := ErrStarted
	w.once.Do(func() {
		go w.main()
		err = <-w.ready
	})
	return err
}

// Refused is what the kernel did not allow, by privilege or seccomp; the worker
// runs without. Call it after Start.
func (w *Worker) Refused() error { return w.thread.refused }

// Done is closed when the worker has ended, for whatever reason.
func (w *Worker) Done() <-chan struct{} { return w.done }

// Stop ends the loop after the turn under way and returns when it has ended,
// with the error that kept it from running, if any. A worker that never ran is
// only released.
func (w *Worker) Stop() error {
	w.once.Do(func() {
		w.bell.close()
		close(w.done)
	})
	w.requestStop()
	<-w.done
	return w.err
}

func (w *Worker) requestStop() {
	w.stopping.Store(true)
	w.Wake()
}

// Wake has the worker take a turn soon; any goroutine may call it. It costs a
// system call only when the worker sleeps.
func (w *Worker) Wake() { w.bell.wake() }

// Watch adds a client's kick socket: whatever arrives on it is read, thrown
// away and wakes the worker. The caller keeps owning fd and calls Unwatch
// before closing it.
func (w *Worker) Watch(fd int) error { return w.bell.watch(fd) }

// Unwatch forgets a kick socket. One whose other end was closed has left
// already; the error says so.
func (w *Worker) Unwatch(fd int) error { return w.bell.unwatch(fd) }

// Stats is at most 1,024 turns old.
func (w *Worker) Stats() Stats { return w.counts.snapshot() }

// Beat grows while the worker lives: at least once in MaxSleep or IdleSleep. A watchdog
// compares two readings taken further apart than that.
func (w *Worker) Beat() uint64 {
	s := w.counts.snapshot()
	return s.Turns + s.Yields + s.Sleeps
}

// main is the worker's goroutine. Its thread has settings of its own by then,
// so it ends locked and takes the thread with it.
func (w *Worker) main() {
	defer close(w.done)
	defer w.bell.close()
	w.err = w.thread.setUp(&w.policy)
	if w.err == nil && w.hooks.Begin != nil {
		w.err = w.hooks.Begin()
	}
	w.ready <- w.err
	if w.err != nil {
		return
	}
	w.turns()
	if w.hooks.End != nil {
		w.hooks.End()
	}
	w.counts.publish()
}

func (w *Worker) turns() {
	w.place.mu.Lock()
	defer w.place.mu.Unlock()
	w.ladder = newLadder(&w.policy, Now())
	w.noteCore(Now())
	for !w.stopping.Load() {
		now := Now()
		busy, deadline := w.loop.Turn(now)
		w.counts.turn(now, busy)
		switch do, until := w.ladder.next(now, busy, deadline); do {
		case stepYield:
			w.yield()
		case stepSleep:
			w.sleep(until)
		}
	}
}

func (w *Worker) yield() {
	w.thread.shorten(false)
	before := Now()
	w.thread.yield()
	after := Now()
	w.ladder.yielded(before, after)
	if after-before < w.policy.Alone && (w.ladder.misses > 0 || w.hooks.Crowded != nil && w.hooks.Crowded(w.core)) {
		w.ladder.missed(after)
	}
	w.counts.yielded(after-before, w.policy.Hog > 0 && after-before > w.policy.Hog)
	if after-w.coreAt > coreAge {
		w.noteCore(after)
	}
}

func (w *Worker) sleep(until Time) {
	fds, timed, ok := w.loop.PrepareSleep(w.fds[:0])
	w.fds = fds
	if !ok {
		return
	}
	defer w.loop.Woke()
	w.thread.shorten(true)
	if !w.bell.fallAsleep() {
		return
	}
	before := Now()
	if timed {
		until = w.ladder.napUntil(before, until)
	}
	w.counts.publish()
	w.place.free(until)
	woken := w.bell.wait(fds, until-before, until-before <= w.policy.MaxSleep)
	w.place.take()
	w.counts.slept(Now()-before, woken)
	w.noteCore(Now())
}

// coreAge is how old the core told to Moved may be while the worker yields:
// asking costs 0.12 µs and a yielding thread seldom moves.
const coreAge = 50 * clock.Microsecond

// noteCore looks where the thread runs, which can only have changed while it
// didn't.
func (w *Worker) noteCore(now Time) {
	if w.hooks.Moved == nil {
		return
	}
	w.coreAt = now
	if core := currentCore(); core != w.core {
		w.core = core
		w.hooks.Moved(core)
	}
}
