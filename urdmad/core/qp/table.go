package qp

import (
	"log/slog"
	"math/rand/v2"

	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/events"
	"urdma/urdmad/core/mailbox"
	"urdma/urdmad/core/mem"
	"urdma/verbs/abi"
)

// Table is what the queue pairs of one worker share: clock, registered memory,
// events, the line of those that have something to send, and the fallback jobs
// that have ended.
type Table struct {
	Clock   *clock.Clock
	Regions *mem.Table
	Events  *events.Sender
	Stats   Stats

	log        *slog.Logger
	traced     abi.TraceEvent // see event
	rand       *rand.Rand
	wake       func()                   // gets the worker out of its sleep, from any goroutine
	mine       func(number uint32) bool // nil: all
	pairs      map[uint32]*QP
	added      uint64 // queue pairs, ever
	run        runQueue
	sender     *QP // the sender, in Transmit
	ended      mailbox.Box[endedJob]
	unfinished []endedJob // taken from there
	submitted  int64      // see Submitted
	buffers    bufferPool
	past       Counters // of queue pairs that were removed
	chunks     chunkPool

	turn  uint64 // Transmits so far, see budget.go
	spent int    // in this turn

	order     []*QP // all, for failDependents
	check     int   // the next that it looks at is the one before this
	unchecked int   // how many it will look at

	// Copies of a client's slot, here because clearing them on the stack would
	// cost more than filling them.
	slot abi.SQE
	list [MaxSGE]abi.SGE
}

// Stats counts what no queue pair counts.
type Stats struct {
	FallbackJobs      uint64 `counter:"fallback_jobs"`
	CompletionOverrun uint64 `counter:"completion_overruns"`
}

// Client is one process as its queue pairs see it: its name and its memory.
type Client struct {
	ID    uint64
	Name  string // command and pid, for logs
	User  string // whose it is: others are not told what its memory is like; empty: unknown
	Space *mem.Space

	Watch    Watch // nil: nobody watches the client; the worker's thread, as the next two
	WatchAll bool  // Watch wants to be told of each post, receive, placement and completion

	Interceptor Interceptor // nil: nobody changes what becomes of the client's work

	// Fault is called once, on the worker's thread, when the client's memory
	// could not be touched; the owner then removes the client.
	Fault func(err error)

	// Completed: something was, or a Write to its memory, since the waker of the
	// client looked last.
	Completed bool

	bytesAhead    int          // bytes, see ReadAhead
	wantReadAhead []*ReadAhead // that wait for some of those, each once
	unwritten     int          // bytes that wait to be written on the fallback path

	turn  uint64 // of the table, that spent is of
	spent int    // of its budget

	domains  map[*Domain]int // XRC domains in which it has shared receive queues, and how many
	brokenAt uint64          // see breaks
}

// NewTable returns an empty table. keys draws STags, numbers draws queue pair
// numbers. wake may be nil.
func NewTable(c *clock.Clock, log *slog.Logger, keys rand.Source, numbers *rand.Rand, wake func()) *Table {
	if wake == nil {
		wake = func() {}
	}
	return &Table{Clock: c, Regions: mem.NewTable(keys), Events: events.NewSender(c), log: log, rand: numbers, wake: wake,
		pairs: map[uint32]*QP{}}
}

// SetShare says which numbers are for this worker's queue pairs, of several workers, before the
// first; nil: all are.
func (t *Table) SetShare(mine func(number uint32) bool) { t.mine = mine }

// Elsewhere reports whether a queue pair of this urdmad with that number would be another
// worker's.
func (t *Table) Elsewhere(n uint32) bool { return t.mine != nil && !t.mine(n) }

// Pair is the queue pair of a number, or nil.
func (t *Table) Pair(n uint32) *QP { return t.pairs[n] }

// Len is how many queue pairs there are.
func (t *Table) Len() int { return len(t.pairs) }

// Past is the work of queue pairs that were removed.
func (t *Table) Past() Counters { return t.past }

// Waiting is how many queue pairs are in line to send, or to be looked at by failDependents.
func (t *Table) Waiting() int { return t.run.len() + t.unchecked }

// Ready puts a queue pair in line: it may have something to send.
func (t *Table) Ready(q *QP) { t.run.add(q) }

// Wake is Ready for a queue pair that may have been removed meanwhile.
func (t *Table) Wake(q *QP) {
	if !q.removed {
		t.Ready(q)
	}
}

// Resume puts the queue pair back in line whose turn a fault in a client's memory has
// ended: that may have been another client's.
func (t *Table) Resume() {
	if q := t.sender; q != nil {
		t.sender = nil
		t.Wake(q)
	}
}

// SendNow has a queue pair send out of its turn in line, and returns how much moved.
func (t *Table) SendNow(q *QP) int { return t.transmit(q) }

// transmit has a queue pair send what it may, and returns how much moved.
func (t *Table) transmit(q *QP) (n int) {
	switch {
	case q.state == abi.QPSErr || q.state == abi.QPSSQE:
		q.flushPosted(fetchBudget)
		return 1
	case q.carrier == nil:
		return 0
	case q.SQ.oldestFailed():
		q.completeSends()
		return 1
	}
	if n = q.carryOutLocal(); n == fetchBudget { // also while a connection is still to come
		t.Ready(q)
	}
	if q.carrier != nil {
		n += q.carrier.Transmit()
	}
	return n
}
