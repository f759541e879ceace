package clock

import "container/heap"

// Timer calls a function once at the time it is set to. Each belongs to one
// Timers from the first Set on.
type Timer struct {
	fn    func()
	at    Time
	index int // 1 + position in the heap; 0 = not set
}

// NewTimer returns a timer that is not set.
func NewTimer(fn func()) *Timer { return &Timer{fn: fn} }

// Timers are the timers of one thread. The zero value has none set.
type Timers struct {
	heap timerHeap
	soon []func() // of which the first ran are called already
	ran  int
}

// Soon has fn run before any timer, at the next Run or RunSoon.
func (s *Timers) Soon(fn func()) { s.soon = append(s.soon, fn) }

// RunSoon calls what Soon was given, and what that gives it, and returns how many
// calls it made, which are bounded: the rest waits for the next time.
func (s *Timers) RunSoon() (n int) {
	const most = 256
	for s.ran < len(s.soon) && n < most {
		fn := s.soon[s.ran]
		s.soon[s.ran] = nil
		s.ran++
		n++
		fn()
	}
	if s.ran > 0 {
		s.soon, s.ran = s.soon[:copy(s.soon, s.soon[s.ran:])], 0
	}
	return n
}

// Set has t run at a time, in place of the one it was set to before; Never
// stops it.
func (s *Timers) Set(t *Timer, at Time) {
	switch {
	case at == Never:
		if t.index > 0 {
			heap.Remove(&s.heap, t.index-1)
		}
	case t.index > 0:
		t.at = at
		heap.Fix(&s.heap, t.index-1)
	default:
		t.at = at
		heap.Push(&s.heap, t)
	}
}

// Hasten has t run no later than at. A timer that runs too early looks at what
// it is for and is set again, so a deadline that moves back costs nothing here.
func (s *Timers) Hasten(t *Timer, at Time) {
	if at != Never && (t.index == 0 || at < t.at) {
		s.Set(t, at)
	}
}

// mostTimers bounds the timers that one Run calls: thousands of connections may die at
// the same time.
const mostTimers = 256

// Run calls the timers that are due, earliest first, and returns how many. It
// calls no more than were set when it began: one that sets itself to the
// present again does not hold up the turn but waits for the next. So do those beyond
// mostTimers.
func (s *Timers) Run(now Time) (n int) {
	n = s.RunSoon()
	for limit := min(len(s.heap), mostTimers); limit > 0 && len(s.heap) > 0 && s.heap[0].at <= now; limit-- {
		t := heap.Pop(&s.heap).(*Timer)
		t.fn()
		n++
	}
	return n
}

// Next is when the next timer is due, or Never; what Soon was given is due always.
func (s *Timers) Next() Time {
	if len(s.soon) > s.ran {
		return 0
	}
	if len(s.heap) == 0 {
		return Never
	}
	return s.heap[0].at
}

// timerHeap orders timers by time, for container/heap.
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
