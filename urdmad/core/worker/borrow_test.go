package worker

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"urdma/urdmad/core/clock"
)

// plainLoop counts its turns in an unguarded variable: only one thread at a time may run the loop.
type plainLoop struct {
	fakeLoop
	n     int64
	turns atomic.Int64
}

func (l *plainLoop) Turn(now Time) (bool, Time) {
	l.n++
	l.turns.Add(1)
	return l.fakeLoop.Turn(now)
}

// TestBorrowIsExclusive: a borrowed call never runs at the same time as a turn or another borrowed call.
func TestBorrowIsExclusive(t *testing.T) {
	l := &plainLoop{}
	w := startWorker(t, l, DefaultPolicy(), Hooks{})
	var all sync.WaitGroup
	var borrowed atomic.Int64
	for range 4 {
		all.Go(func() {
			for tries := 0; tries < 3000 || borrowed.Load() == 0; tries++ {
				if w.Borrow(func(Time) (bool, Time) { l.n++; return false, clock.Never }) {
					borrowed.Add(1)
				}
				if tries%16 == 0 {
					w.Wake()
				}
			}
		})
	}
	all.Wait()
	if err := w.Stop(); err != nil {
		t.Fatal(err)
	}
	if turns := l.turns.Load(); l.n != turns+borrowed.Load() {
		t.Errorf("%d turns and %d borrowings make %d", turns, borrowed.Load(), l.n)
	}
}

// TestWakingWorkerGoesFirst: a woken worker takes its turn before waiting borrowers, so a client that
// borrows continuously delays no packets.
func TestWakingWorkerGoesFirst(t *testing.T) {
	l := &plainLoop{}
	w := startWorker(t, l, longSleeper(), Hooks{})
	for range 200 {
		var next sync.WaitGroup
		var due int64
		eventually(t, "the worker sleeps", func() bool {
			return w.Borrow(func(Time) (bool, Time) {
				due = l.turns.Load() + 1
				w.Wake()
				eventually(t, "the worker is awake", func() bool { return !w.bell.asleep.Load() })
				next.Go(func() {
					w.Borrow(func(Time) (bool, Time) {
						if l.turns.Load() < due {
							t.Error("somebody else was faster")
						}
						return false, clock.Never
					})
				})
				time.Sleep(100 * time.Microsecond) // not needed; lets both wait
				return false, clock.Never
			})
		})
		next.Wait()
		if t.Failed() {
			return
		}
	}
}

// TestBorrowWakes: a worker that would sleep for ever takes a turn if it has new work, or a new deadline.
func TestBorrowWakes(t *testing.T) {
	p := DefaultPolicy()
	p.MaxSleep = 3600 * clock.Second
	l := &fakeLoop{}
	w := startWorker(t, l, p, Hooks{})
	borrow := func(fn func(now Time) (bool, Time)) {
		t.Helper()
		eventually(t, "the worker sleeps", func() bool { return w.Borrow(fn) })
	}
	borrow(func(Time) (bool, Time) { l.posts.Add(1); return true, clock.Never })
	eventually(t, "work is done", func() bool { return l.finished() == 1 })
	borrow(func(now Time) (bool, Time) {
		due := now + clock.Millisecond
		l.due.Store(int64(due))
		return false, due
	})
	eventually(t, "what was due is done", func() bool { return l.finished() == 2 })
}

// TestBorrowOfNobody: a worker that does not run can't be borrowed.
func TestBorrowOfNobody(t *testing.T) {
	w, err := New(&fakeLoop{}, DefaultPolicy(), Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	never := func(Time) (bool, Time) { t.Error("called"); return false, clock.Never }
	if w.Borrow(never) {
		t.Error("before the start")
	}
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	if err := w.Stop(); err != nil {
		t.Fatal(err)
	}
	if w.Borrow(never) {
		t.Error("after the end")
	}
}
