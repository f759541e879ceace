package worker

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"urdma/ancillary/ancillarytest"
	"urdma/urdmad/core/clock"
)

// fakeLoop has work whenever posts were added. Like the engine, it checks for them again after announcing that it
// sleeps.
type fakeLoop struct {
	posts    atomic.Int64
	sleeping atomic.Bool
	due      atomic.Int64 // deadline, 0: never
	timed    bool
	extra    []int

	mu   sync.Mutex
	done int64
	at   Time // of the last turn with work
}

func (l *fakeLoop) Turn(now Time) (bool, Time) {
	n := l.posts.Swap(0)
	deadline := clock.Never
	if due := Time(l.due.Load()); due != 0 {
		if deadline = due; now >= due {
			l.due.Store(0)
			n, deadline = n+1, clock.Never
		}
	}
	if n == 0 {
		return false, deadline
	}
	l.mu.Lock()
	l.done, l.at = l.done+n, now
	l.mu.Unlock()
	return true, deadline
}

func (l *fakeLoop) PrepareSleep(fds []int) ([]int, bool, bool) {
	l.sleeping.Store(true)
	if l.posts.Load() != 0 {
		l.sleeping.Store(false)
		return fds, false, false
	}
	return append(fds, l.extra...), l.timed, true
}

func (l *fakeLoop) Woke() { l.sleeping.Store(false) }

func (l *fakeLoop) finished() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.done
}

func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(50 * time.Microsecond) {
		if cond() {
			return
		}
	}
	t.Fatalf("not within a minute: %s", what)
}

func startWorker(t *testing.T, l Loop, p Policy, h Hooks) *Worker {
	t.Helper()
	w, err := New(l, p, h)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Stop() })
	return w
}

// longSleeper never wakes by itself within a test.
func longSleeper() Policy {
	p := DefaultPolicy()
	p.MaxSleep = 3600 * clock.Second
	return p
}

func TestWakeLosesNothing(t *testing.T) {
	l := &fakeLoop{}
	w := startWorker(t, l, longSleeper(), Hooks{})
	const rounds = 3000
	for i := int64(1); i <= rounds; i++ {
		if i%4 == 0 {
			eventually(t, "asleep", l.sleeping.Load)
		}
		l.posts.Add(1)
		w.Wake()
		eventually(t, "post seen", func() bool { return l.finished() == i })
	}
	s := w.Stats()
	t.Logf("%+v", s)
	if s.Sleeps < rounds/4 || s.Wakes == 0 {
		t.Errorf("%d sleeps, %d wakes in %d rounds: the worker was meant to sleep", s.Sleeps, s.Wakes, rounds)
	}
}

func socketpair(t *testing.T) (daemon, client int) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fds[0]) })
	return fds[0], fds[1]
}

func TestKickSocketWakes(t *testing.T) {
	l := &fakeLoop{}
	w := startWorker(t, l, longSleeper(), Hooks{})
	kick, client := socketpair(t)
	if err := w.Watch(kick); err != nil {
		t.Fatal(err)
	}
	for i := int64(1); i <= 500; i++ {
		eventually(t, "asleep", l.sleeping.Load)
		l.posts.Add(1)
		if err := unix.Sendto(client, []byte{1}, unix.MSG_DONTWAIT, nil); err != nil {
			t.Fatal(err)
		}
		eventually(t, "post seen", func() bool { return l.finished() == i })
	}
	// The client dies: its socket must not keep the worker awake.
	if err := unix.Close(client); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the socket left the set", func() bool { return w.Unwatch(kick) != nil })
	eventually(t, "asleep", l.sleeping.Load)
	before := w.Stats().Sleeps
	time.Sleep(20 * time.Millisecond)
	if after := w.Stats().Sleeps; after > before+1 {
		t.Errorf("%d sleeps in 20 ms after the client died", after-before)
	}
}

// TestSlowDescriptor: a descriptor that comes with a kick and takes long to close does not stop the worker.
func TestSlowDescriptor(t *testing.T) {
	l := &fakeLoop{}
	w := startWorker(t, l, longSleeper(), Hooks{})
	kick, client := socketpair(t)
	t.Cleanup(func() { _ = unix.Close(client) })
	ancillarytest.Send(t, client, ancillarytest.SlowToClose(t))
	eventually(t, "asleep", l.sleeping.Load)
	if err := w.Watch(kick); err != nil {
		t.Fatal(err)
	}
	for i := int64(1); i <= 3; i++ {
		eventually(t, "asleep", l.sleeping.Load)
		l.posts.Add(1)
		w.Wake()
		eventually(t, "post seen", func() bool { return l.finished() == i })
	}
}

func TestPortDescriptorWakes(t *testing.T) {
	mine, other := socketpair(t)
	t.Cleanup(func() { _ = unix.Close(other) })
	l := &fakeLoop{extra: []int{mine}}
	startWorker(t, l, longSleeper(), Hooks{})
	eventually(t, "asleep", l.sleeping.Load)
	l.posts.Add(1)
	if _, err := unix.Write(other, []byte{1}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "post seen", func() bool { return l.finished() == 1 })
}

func TestDeadlineEndsSleep(t *testing.T) {
	l := &fakeLoop{}
	w := startWorker(t, l, longSleeper(), Hooks{})
	eventually(t, "asleep", l.sleeping.Load)
	due := Now() + 20*ms
	l.due.Store(int64(due))
	w.Wake()
	eventually(t, "timer ran", func() bool { return l.finished() == 1 })
	l.mu.Lock()
	late := l.at - due
	l.mu.Unlock()
	t.Logf("timer ran %d ns late", late)
	if late < 0 {
		t.Errorf("timer due at %d ran %d ns early", due, -late)
	}
}

func TestTimedNapsSeeWorkNobodyAnnounces(t *testing.T) {
	l := &fakeLoop{timed: true}
	w := startWorker(t, l, longSleeper(), Hooks{})
	eventually(t, "asleep", l.sleeping.Load)
	l.posts.Add(1)
	eventually(t, "post seen without a wake", func() bool { return l.finished() == 1 })
	if w.Stats().Wakes > 5 { // a runtime signal may interrupt a nap
		t.Errorf("%d wakes, but nobody woke it", w.Stats().Wakes)
	}
}

func TestBeatWhileIdle(t *testing.T) {
	p := DefaultPolicy()
	p.MaxSleep = 5 * ms
	w := startWorker(t, &fakeLoop{}, p, Hooks{})
	before := w.Beat()
	eventually(t, "beat", func() bool { return w.Beat() > before })
}

func TestStopAndHooks(t *testing.T) {
	var began, ended, moved atomic.Int32
	h := Hooks{Begin: func() error { began.Add(1); return nil }, End: func() { ended.Add(1) },
		Moved: func(core int32) { moved.Store(core + 1) }}
	l := &fakeLoop{}
	w, err := New(l, longSleeper(), h)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "asleep", l.sleeping.Load)
	if err := w.Stop(); err != nil {
		t.Errorf("Stop: %v", err)
	}
	if began.Load() != 1 || ended.Load() != 1 || moved.Load() == 0 {
		t.Errorf("began %d, ended %d, core+1 %d; want 1, 1, above 0", began.Load(), ended.Load(), moved.Load())
	}
	if l.sleeping.Load() {
		t.Error("stopped without Woke")
	}
	w.Wake() // after the end: no effect
	if err := w.Start(); !errors.Is(err, ErrStarted) {
		t.Errorf("second start: %v, want ErrStarted", err)
	}
	if err := w.Watch(0); !errors.Is(err, ErrStopped) {
		t.Errorf("Watch after the end: %v, want ErrStopped", err)
	}
}

func TestBeginFails(t *testing.T) {
	refused := errors.New("refused")
	w, err := New(&fakeLoop{}, DefaultPolicy(), Hooks{Begin: func() error { return refused }})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Start(); !errors.Is(err, refused) {
		t.Errorf("Start: %v, want %v", err, refused)
	}
}

func TestStopWithoutStart(t *testing.T) {
	w, err := New(&fakeLoop{}, DefaultPolicy(), Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Stop(); err != nil {
		t.Errorf("Stop: %v", err)
	}
}

func TestThreadSettings(t *testing.T) {
	var during, shortened unix.SchedAttr
	var allowed unix.CPUSet
	read := func(into *unix.SchedAttr) {
		if attr, err := unix.SchedGetAttr(0, 0); err == nil {
			*into = *attr
		}
	}
	p := longSleeper()
	p.Core, p.Nice = 0, 3
	h := Hooks{Begin: func() error { read(&during); return unix.SchedGetaffinity(0, &allowed) }}
	l := &napWatcher{fakeLoop: &fakeLoop{}, woke: func() { read(&shortened) }}
	w := startWorker(t, l, p, h)
	eventually(t, "asleep", l.sleeping.Load)
	w.Wake()
	if err := w.Stop(); err != nil {
		t.Fatal(err)
	}
	if during.Nice != 3 || allowed.Count() != 1 || !allowed.IsSet(0) {
		t.Errorf("nice %d, %d cores; want nice 3 on core 0 alone", during.Nice, allowed.Count())
	}
	if during.Runtime == 0 {
		t.Skip("the kernel has no slices for SCHED_OTHER (before 6.12)")
	}
	if shortened.Runtime != uint64(p.SleepSlice) || shortened.Nice != 3 {
		t.Errorf("asleep with slice %d, nice %d; want %d and 3", shortened.Runtime, shortened.Nice, p.SleepSlice)
	}
}

type napWatcher struct {
	*fakeLoop
	woke func()
}

func (l *napWatcher) Woke() {
	l.woke()
	l.fakeLoop.Woke()
}

// A turn of an idle or a busy worker allocates nothing.
func TestTurnsAllocateNothing(t *testing.T) {
	l := &fakeLoop{}
	w, err := New(l, DefaultPolicy(), Hooks{Moved: func(int32) {}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Stop() })
	w.ladder = newLadder(&w.policy, Now())
	w.thread.fair, w.thread.short = false, 0
	w.place.mu.Lock() // as turns does
	if n := testing.AllocsPerRun(100, func() {
		l.posts.Add(1)
		now := Now()
		busy, deadline := l.Turn(now)
		w.counts.turn(now, busy)
		w.ladder.next(now, busy, deadline)
		w.yield()
		w.sleep(Now() + 10*us)
		l.posts.Store(0)
		w.sleep(Now() + 10*us)
	}); n != 0 {
		t.Errorf("%v allocations a round", n)
	}
}
