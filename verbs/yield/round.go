package yield

import "sync/atomic"

// mostQueues: after this many polls a round ends, because the program may have stopped polling the first
// queue.
const mostQueues = 4096

// Round finds out when a program has polled all its queues. An existing completion would not end a wait for
// urdmad, so every queue must be polled before the wait. Several goroutines may disturb one another's rounds;
// at worst this costs a wait.
type Round struct {
	from  atomic.Uint64 // 1 + the queue at which the round began; 0: it begins with the next poll
	looks atomic.Uint32 // polls since then
}

// Ends is called after an empty poll, and reports whether all queues were polled. Then the next round begins.
func (r *Round) Ends(queue uint32) bool {
	this, from := uint64(queue)+1, r.from.Load()
	ends := from == this || from != 0 && r.looks.Add(1) >= mostQueues
	if ends || from == 0 {
		r.from.Store(this)
		r.looks.Store(0)
	}
	return ends
}

// Found is called after a poll that found something: a new round begins.
func (r *Round) Found() {
	if r.from.Load() != 0 {
		r.from.Store(0)
	}
}
