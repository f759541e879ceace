package clock

import "container/heap"

// Timer calls a function once at a set time. From the first Set on, it belongs to one Timers.
type Timer struct {
	fn    func()
	at    Time
	index int // 1 + index in the heap; 0: not set
}

// NewTimer returns a timer that is not set.
func NewTimer(fn func()) *Timer { return &Timer{fn: fn} }

// Timers are the timers of one thread. The zero value is empty.
type Timers struct {
	heap timerHeap
	soon []func() // functions given to Soon; the first ran of them were called already
	ran  int
}

// Soon makes fn run before any timer, at the next Run or RunSoon.
func (s *Timers) Soon(fn func()) { s.soon = append(s.soon, fn) }

// RunSoon calls the functions given to Soon, including those that they add, and returns how many it called.
// Their number is bounded; the others wait for the next call.
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

// Set makes t run at a time, which replaces an earlier one; Never stops it.
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

// Hasten makes t run no later than at. A timer that runs too early finds nothing due and is set again, so a
// deadline that moves later costs nothing here.
func (s *Timers) Hasten(t *Timer, at Time) {
	if at != Never && (t.index == 0 || at < t.at) {
		s.Set(t, at)
	}
}

// mostTimers bounds the timers that one Run calls: thousands of connections may time out at once.
const mostTimers = 256

// Run calls the timers that are due, earliest first, and returns how many. It calls at most as many as were
// set when it began, so a timer that sets itself to the present time again waits for the next turn. It
// calls at most mostTimers; the others wait too.
func (s *Timers) Run(now Time) (n int) {
	n = s.RunSoon()
	for limit := min(len(s.heap), mostTimers); limit > 0 && len(s.heap) > 0 && s.heap[0].at <= now; limit-- {
		t := heap.Pop(&s.heap).(*Timer)
		t.fn()
		n++
	}
	return n
}

// Next returns when the next timer is due, or Never; functions given to Soon are due at once.
func (s *Timers) Next() Time {
	if len(s.soon) > s.ran {
		return 0
	}
	if len(s.heap) == 0 {
		return Never
	}
	return s.heap[0].at
}

// timerHeap orders timers by time; it implements heap.Interface.
type timerHeap []*Timer

func (h timerHeap) Len() int           { return len(h) }
func (h timerHeap) Less(i, j int) bool { return h[i].at < h[j].at }
func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i+1, j+1
}

// Push implements heap.Interface.
func (h *timerHeap) Push(x any) {
	t := x.(*Timer)
	*h = append(*h, t)
	t.index = len(*h)
}

// Pop implements heap.Interface.
func (h *timerHeap) Pop() any {
	old := *h
	t := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	t.index = 0
	return t
}
