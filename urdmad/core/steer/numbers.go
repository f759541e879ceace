package steer

import (
	"sync"
	"sync/atomic"
	"time"

	"urdma/wire"
)

// grace is for how long a number that nobody has any more counts as its last worker's: a
// program may be about to listen there again (package cm, listenerGrace).
const grace = 2 * time.Second

// Numbers says which worker has a UDP port number. Any worker may ask at any time.
type Numbers struct {
	workers int
	worker  [1 << 16]atomic.Int32 // one more than the last that had the number; 0: none did

	mu   sync.Mutex
	used [1 << 16]used
}

// used is how often a number was taken, and when it was last given back.
type used struct {
	times int
	until time.Time
}

// NewNumbers is for so many workers.
func NewNumbers(workers int) *Numbers { return &Numbers{workers: workers} }

// of is the worker that a packet to a number is for. Numbers that nobody ever had are
// worker 0's, which says so.
func (n *Numbers) of(number uint16) int { return max(int(n.worker[number].Load())-1, 0) }

// Share is the numbers of one worker.
type Share struct {
	n      *Numbers
	worker int
}

// Of is the share of a worker.
func (n *Numbers) Of(worker int) *Share { return &Share{n, worker} }

// Chooses reports whether the worker may choose a number by itself: no other does.
func (s *Share) Chooses(number uint16) bool {
	return wire.WorkerOf(uint32(number), s.n.workers) == s.worker
}

// HasPair reports whether a queue pair number is the worker's.
func (s *Share) HasPair(number uint32) bool { return wire.WorkerOf(number, s.n.workers) == s.worker }

// Take gives the worker a number, until as many Gives; false if another worker has it.
func (s *Share) Take(number uint16) bool {
	n := s.n
	n.mu.Lock()
	defer n.mu.Unlock()
	u := &n.used[number]
	if u.times > 0 && n.of(number) != s.worker {
		return false
	}
	u.times++
	n.worker[number].Store(int32(s.worker + 1))
	return true
}

// Give undoes a Take.
func (s *Share) Give(number uint16) {
	n := s.n
	n.mu.Lock()
	defer n.mu.Unlock()
	u := &n.used[number]
	if u.times--; u.times == 0 {
		u.until = time.Now().Add(grace)
	}
}

// Elsewhere reports whether another worker has a number, or had it a moment ago.
func (s *Share) Elsewhere(number uint16) bool {
	n := s.n
	n.mu.Lock()
	defer n.mu.Unlock()
	u := &n.used[number]
	return n.of(number) != s.worker && (u.times > 0 || time.Now().Before(u.until))
}
