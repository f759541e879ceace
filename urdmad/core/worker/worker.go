package worker

import (
	"errors"
	"sync"
	"sync/atomic"

	"urdma/urdmad/core/clock"
)

// Loop is the poll loop that a worker runs. All calls come on the worker's thread.
type Loop interface {
	// Turn does the work that is available at now. busy means that there was some; deadline is when the
	// next timer is due.
	Turn(now Time) (busy bool, deadline Time)
	// PrepareSleep requests wake-ups from now on (sleeping flags, interrupts) and then looks for work once
	// more. ok is false if there is work; then the requests are already undone. Otherwise out is fds with
	// the descriptors to wait for appended, and timed says that some source of work can't wake the worker,
	// so the sleep must be short.
	PrepareSleep(fds []int) (out []int, timed, ok bool)
	// Woke undoes PrepareSleep after each sleep.
	Woke()
}

// Hooks are optional calls on the worker's thread.
type Hooks struct {
	Begin func() error     // before the first turn, for example for rte_thread_register
	End   func()           // after the last turn
	Moved func(core int32) // the worker now runs on this core (-1: unknown)
	// Crowded reports whether a thread that waits for the worker is known to want this core. It is called
	// after a yield that let no other thread run: a yield runs only threads of the worker's own scheduling
	// group (sched(7), autogroup).
	Crowded func(core int32) bool
}

// Worker runs one Loop. Create it with New, start it with Start or Run.
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
	coreAt Time // when core was determined
	place  place

	stopping atomic.Bool
	once     sync.Once
	ready    chan error // receives the result of the set-up
	done     chan struct{}
	err      error
}

// ErrStarted is returned by a second Run or Start, ErrStopped by Watch and Unwatch after the worker has
// ended.
var (
	ErrStarted = errors.New("worker: already started")
	ErrStopped = errors.New("worker: stopped")
)

// New creates a worker, which has no thread yet.
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

// Start runs the loop in a goroutine on a thread of its own. It returns just before the first turn, or with
// the error that prevents the worker from running.
func (w *Worker) Start() error {
	err := ErrStarted
	w.once.Do(func() {
		go w.main()
		err = <-w.ready
	})
	return err
}

// Refused returns the settings that the kernel refused, for lack of privilege or by seccomp; the worker
// runs without them. Call it after Start.
func (w *Worker) Refused() error { return w.thread.refused }

// Done is closed when the worker has ended, for any reason.
func (w *Worker) Done() <-chan struct{} { return w.done }

// Stop ends the loop after the current turn. It returns when the worker has ended, with the error that
// prevented it from running, if any. A worker that never ran is only released.
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

// Wake makes the worker take a turn soon; any goroutine may call it. It makes a system call only if the
// worker sleeps.
func (w *Worker) Wake() { w.bell.wake() }

// Watch adds a client's kick socket: any data that arrive on it wake the worker, and are discarded. The
// caller keeps owning fd and calls Unwatch before closing it.
func (w *Worker) Watch(fd int) error { return w.bell.watch(fd) }

// Unwatch removes a kick socket. If the other end was closed, the socket is already removed, and an error
// says so.
func (w *Worker) Unwatch(fd int) error { return w.bell.unwatch(fd) }

// Stats returns a snapshot that is at most 1,024 turns old.
func (w *Worker) Stats() Stats { return w.counts.snapshot() }

// Beat returns a number that increases while the worker lives, at least once in MaxSleep or IdleSleep. A
// watchdog compares two values taken further apart than that.
func (w *Worker) Beat() uint64 {
	s := w.counts.snapshot()
	return s.Turns + s.Yields + s.Sleeps
}

// main is the worker's goroutine. Its thread has settings of its own, so the goroutine stays locked to it
// and the thread ends with it.
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

// coreAge is the age up to which the core reported by Moved remains valid while the worker yields: asking
// costs 0.12 µs, and a yielding thread rarely moves.
const coreAge = 50 * clock.Microsecond

// noteCore determines the thread's core, which can change only while the thread does not run.
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
