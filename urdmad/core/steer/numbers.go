package steer

import (
	"sync"
	"sync/atomic"
	"time"

	"urdma/wire"
)

// grace is how long a released number still belongs to its last worker: a program may be about to listen
// there again (package cm, listenerGrace).
const grace = 2 * time.Second

// Numbers records which worker has a UDP port number. Any worker may use it at any time.
type Numbers struct {
	workers int
	worker  [1 << 16]atomic.Int32 // one more than the last worker that had the number; 0: none

	mu   sync.Mutex
	used [1 << 16]used
}

// used is how often a number was taken, and when it was last released.
type used struct {
	times int
	until time.Time
}

// NewNumbers returns a Numbers for so many workers.
func NewNumbers(workers int) *Numbers { return &Numbers{workers: workers} }

// of returns the worker for packets to a number. Unused numbers belong to worker 0, which rejects their
// packets.
func (n *Numbers) of(number uint16) int { return max(int(n.worker[number].Load())-1, 0) }

// Share is the numbers of one worker.
type Share struct {
	n      *Numbers
	worker int
}

// Of returns the share of a worker.
func (n *Numbers) Of(worker int) *Share { return &Share{n, worker} }

// Chooses reports whether the worker may choose a number for an id: no other worker may.
func (s *Share) Chooses(number uint16) bool {
	return wire.WorkerOf(uint32(number), s.n.workers) == s.worker
}

// HasPair reports whether the worker has a queue pair number.
func (s *Share) HasPair(number uint32) bool { return wire.WorkerOf(number, s.n.workers) == s.worker }

// Take reserves a number for the worker until as many calls of Give; false if another worker has it.
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
