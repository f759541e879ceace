package worker

import (
	"sync"
	"sync/atomic"
	"testing"

	"urdma/urdmad/clock"
)

// plainLoop counts its turns in a variable that nothing guards but that one at a
// time runs the loop.
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

// TestBorrowIsExclusive: what is done in the worker's place never runs beside a
// turn, nor beside what somebody else does there.
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

// TestBorrowWakes: a worker that would sleep for ever takes a turn when there is
// work, or a deadline, that there was not when it fell asleep.
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

// TestBorrowOfNobody: a worker that does not run has no place to lend.
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
