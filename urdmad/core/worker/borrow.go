package worker

import "sync"

// place is who runs the loop: the worker, but while it sleeps anybody who has
// something short to do there. Waking a thread to do it, and being woken by that one
// in turn, costs ten times what is to be done.
type place struct {
	queue sync.Mutex // borrowers stand in line here, so that mu is free or the worker's
	mu    sync.Mutex // of the loop
	idle  bool       // the worker sleeps; under mu
	until Time       // and means to sleep until then
}

func (p *place) free(until Time) {
	p.idle, p.until = true, until
	p.mu.Unlock()
}

func (p *place) take() {
	p.mu.Lock()
	p.idle = false
}

// Borrow calls fn in the worker's place if the worker sleeps, and reports whether
// it did. fn says whether there is work for the worker now, and until when there
// is none. It must not wait for anything: packets may be waiting. A worker that has
// been woken goes before all who stand in line: locks alone would let them overtake
// it for a millisecond.
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

// borrow calls fn if the worker sleeps, and reports whether it did, and whether the
// worker must not sleep on.
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

// use calls fn and reports whether the worker must not sleep on.
func (p *place) use(fn func(now Time) (work bool, deadline Time)) (wake bool) {
	work, deadline := fn(Now())
	if deadline < p.until {
		p.until = deadline
		return true
	}
	return work
}
