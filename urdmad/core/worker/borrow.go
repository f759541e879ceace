package worker

import "sync"

// place is the right to run the loop. The worker has it, except while it sleeps: then another thread with a
// short task may take it. Waking the worker for the task, and being woken by it, would cost ten times as
// much as the task.
type place struct {
	queue sync.Mutex // borrowers wait here, so that mu is free or the worker's
	mu    sync.Mutex // held while the loop runs
	idle  bool       // the worker sleeps; under mu
	until Time       // the planned end of that sleep
}

func (p *place) free(until Time) {
	p.idle, p.until = true, until
	p.mu.Unlock()
}

func (p *place) take() {
	p.mu.Lock()
	p.idle = false
}

// Borrow calls fn in place of the worker if the worker sleeps, and reports whether it did. fn returns
// whether there is work for the worker now, and the time until which there is none. fn must not block:
// packets may be waiting. A worker that was woken goes before all waiting borrowers: with mutexes alone
// they could delay it by a millisecond.
func (w *Worker) Borrow(fn func(now Time) (work bool, deadline Time)) bool {
	w.place.queue.Lock()
	defer w.place.queue.Unlock()
	if !w.bell.asleep.Load() {
		return false
	}
	done, wake := w.place.borrow(fn)
	if wake {
		w.Wake()
	}
	return done
}

// borrow calls fn if the worker sleeps. It reports whether it did, and whether the worker must wake up.
func (p *place) borrow(fn func(now Time) (work bool, deadline Time)) (done, wake bool) {
	if !p.mu.TryLock() {
		return false, false
	}
	defer p.mu.Unlock()
	if !p.idle {
		return false, false
	}
	return true, p.use(fn)
}

// use calls fn and reports whether the worker must wake up.
func (p *place) use(fn func(now Time) (work bool, deadline Time)) (wake bool) {
	work, deadline := fn(Now())
	if deadline < p.until {
		p.until = deadline
		return true
	}
	return work
}
