package engine

import "container/heap"

// Timer calls a function on the worker's thread at a time. The zero Timer with
// a function is idle.
type Timer struct {
	fn    func()
	at    Time
	index int // 1 + position in the heap; 0 = idle
}

// NewTimer returns an idle timer.
func NewTimer(fn func()) *Timer { return &Timer{fn: fn} }

// timerHeap orders timers by time.
type timerHeap []*Timer

func (h timerHeap) Len() int           { return len(h) }
func (h timerHeap) Less(i, j int) bool { return h[i].at < h[j].at }
func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i+1, j+1
}

// Push is heap.Interface's.
func (h *timerHeap) Push(x any) {
	t := x.(*Timer)
	*h = append(*h, t)
	t.index = len(*h)
}

// Pop is heap.Interface's.
func (h *timerHeap) Pop() any {
	old := *h
	t := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	t.index = 0
	return t
}

// SetTimer arms t, or moves it; Never disarms.
func (e *Engine) SetTimer(t *Timer, at Time) {
	switch {
	case at == Never:
		if t.index > 0 {
			heap.Remove(&e.timers, t.index-1)
		}
	case t.index > 0:
		t.at = at
		heap.Fix(&e.timers, t.index-1)
	default:
		t.at = at
		heap.Push(&e.timers, t)
	}
}

// hasten arms t no later than at. A timer that fires too early looks at its
// connection and sleeps again, so moving deadlines back costs nothing here.
func (e *Engine) hasten(t *Timer, at Time) {
	if at != Never && (t.index == 0 || at < t.at) {
		e.SetTimer(t, at)
	}
}

// runTimers calls the timers that are due, and not for ever: one that is set
// again to the present waits for the next turn.
func (e *Engine) runTimers() (n int) {
	for most := len(e.timers); n < most && len(e.timers) > 0 && e.timers[0].at <= e.now; {
		t := heap.Pop(&e.timers).(*Timer)
		t.fn()
		n++
	}
	return n
}

// nextTimer is when the next timer is due.
func (e *Engine) nextTimer() Time {
	if len(e.timers) == 0 {
		return Never
	}
	return e.timers[0].at
}
