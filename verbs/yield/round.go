package yield

import "sync/atomic"

// mostQueues are looked at; after so many looks the first may be polled no more.
const mostQueues = 4096

// Round tells when a program has looked at all its queues. A completion that lies
// in one already ends no wait for urdmad, so each is looked at before one, however
// many there are. Several goroutines may disturb one another's rounds, which costs
// a wait at most.
type Round struct {
	from  atomic.Uint64 // 1 + the queue at which it began; 0: it begins with the next
	looks atomic.Uint32 // since
}

// Ends follows a look at a queue that found nothing, and reports whether all were
// looked at. Then the next round begins.
func (r *Round) Ends(queue uint32) bool {
	this, from := uint64(queue)+1, r.from.Load()
	ends := from == this || from != 0 && r.looks.Add(1) >= mostQueues
	if ends || from == 0 {
		r.from.Store(this)
		r.looks.Store(0)
	}
	return ends
}

// Found follows a look that found something: a round begins with the next.
func (r *Round) Found() {
	if r.from.Load() != 0 {
		r.from.Store(0)
	}
}
