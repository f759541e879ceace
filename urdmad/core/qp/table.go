package qp

import (
	"log/slog"
	"math/rand/v2"

	"urdma/reason"
	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/events"
	"urdma/urdmad/core/mailbox"
	"urdma/urdmad/core/mem"
	"urdma/verbs/abi"
)

// Table is the state shared by the queue pairs of one worker: clock, registered memory, events,
// the line of queue pairs that have something to send, and finished fallback jobs.
type Table struct {
	Clock   *clock.Clock
	Regions *mem.Table
	Events  *events.Sender
	Stats   Stats
	Serving *QP // whose packet, post or place in line is being handled; nil: nobody's. A panic meanwhile ends its client
	// Retired, if set, is told of each send work request that ends, before its memory is released: its index, the
	// status of its completion, and the reason for an error.
	Retired func(q *QP, i, status uint32, why reason.Number)

	log        *slog.Logger
	traced     abi.TraceEvent // see event
	rand       *rand.Rand
	wake       func()                   // wakes the worker, from any goroutine
	mine       func(number uint32) bool // whether a queue pair number belongs to this worker; nil: all do
	pairs      map[uint32]*QP
	added      uint64 // number of queue pairs ever added
	run        runQueue
	ended      mailbox.Box[endedJob]
	unfinished []endedJob // taken from ended
	submitted  int64      // see Submitted
	buffers    bufferPool
	past       Counters // sums over removed queue pairs
	chunks     chunkPool

	turn  uint64 // number of Transmits so far, see budget.go
	spent int    // work done in this turn

	order     []*QP // all queue pairs, for failDependents
	check     int   // failDependents checks the one before this index next
	unchecked int   // how many are left to check

	// Copies of a client's slot, here because clearing them on the stack would
	// cost more than filling them.
	slot abi.SQE
	list [MaxSGE]abi.SGE
}

// Stats has the counters that belong to no queue pair.
type Stats struct {
	FallbackJobs      uint64 `counter:"fallback_jobs"`
	CompletionOverrun uint64 `counter:"completion_overruns"`
}

// Client is one process, as its queue pairs see it: its name and its memory.
type Client struct {
	ID    uint64
	Name  string // command and pid, for logs
	User  string // its user: other users get no facts about its memory; empty: unknown
	Space *mem.Space

	Watch    Watch // nil: not observed. This and the next two fields: worker's thread only
	WatchAll bool  // Watch also wants each post, receive, placement and completion

	Interceptor Interceptor // nil: none

	// Fault is called once, on the worker's thread, when the client's memory
	// could not be accessed; the owner then removes the client.
	Fault func(err error)

	// Completed is set by a completion, and by a Write to the client's memory. The code that
	// wakes the client clears it.
	Completed bool

	bytesAhead    int          // bytes read ahead, see ReadAhead
	wantReadAhead []*ReadAhead // those that wait for budget, each once
	unwritten     int          // bytes that wait to be written on the fallback path

	turn  uint64 // Table.turn to which spent belongs
	spent int    // used part of the client's budget

	domains map[*Domain]int // XRC domains, with the number of the client's shared receive queues there
	broken  broken
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

// SetShare sets which queue pair numbers belong to this worker if there are several workers; nil:
// all. It must be called before the first queue pair is added.
func (t *Table) SetShare(mine func(number uint32) bool) { t.mine = mine }

// Elsewhere reports whether queue pair number n belongs to another worker of this urdmad.
func (t *Table) Elsewhere(n uint32) bool { return t.mine != nil && !t.mine(n) }

// Pair returns the queue pair with number n, or nil.
func (t *Table) Pair(n uint32) *QP { return t.pairs[n] }

// Len returns the number of queue pairs.
func (t *Table) Len() int { return len(t.pairs) }

// At returns the queue pair at index i, below Len. When a queue pair is removed, the last one takes its index.
func (t *Table) At(i int) *QP { return t.order[i] }

// Past returns the sums of the counters of removed queue pairs.
func (t *Table) Past() Counters { return t.past }

// Waiting returns how many queue pairs are in line to send, or are still to be checked by
// failDependents.
func (t *Table) Waiting() int { return t.run.len() + t.unchecked }

// Ready puts a queue pair in line, because it may have something to send.
func (t *Table) Ready(q *QP) { t.run.add(q) }

// Wake is Ready for a queue pair that may have been removed in the meantime.
func (t *Table) Wake(q *QP) {
	if !q.removed {
		t.Ready(q)
	}
}

// Resume puts the queue pair back in line whose service ended with a fault in client memory. The
// memory may have been another client's.
func (t *Table) Resume() {
	if q := t.Serving; q != nil {
		t.Serving = nil
		t.Wake(q)
	}
}

// The work of a turn is limited over all queue pairs and per client, however many queue pairs have
// something to send. Work is counted in bytes: those copied, and for other work the
// number of bytes that could be copied in the same time, rounded up.
const (
	turnBudget   = 8 << 20
	clientBudget = 2 << 20

	pieceCost = 4096 // a packet, or a message within this urdmad
	slotCost  = 512  // fetching or completing a work request
	dropCost  = 128  // dropping a work request without completion
	eventCost = 16 << 10
	lookCost  = 256 // checking a target queue pair of an XRC domain
)

// fetchBudget is the largest number of slots of one queue that are taken from a client's ring in
// a turn, so that a client that posts thousands at once does not delay the others.
const fetchBudget = 256

// Overspent reports whether the work done since the counter was at since has used up a turn's
// budget.
func (t *Table) Overspent(since int) bool { return t.spent-since >= turnBudget }

// Spent returns the work done since the last Transmit, or so far in the present one.
func (t *Table) Spent() int { return t.spent }

// Spend adds work that the table does not see, in bytes.
func (t *Table) Spend(bytes int) { t.spent += bytes }

// send sends an event message.
func (t *Table) send(to *events.Socket, msg []byte) {
	t.spent += eventCost
	t.Events.Send(to, msg)
}

// broken says whether an object is broken, and why: queue pairs that use it fail, except those added later.
type broken struct {
	at  uint64 // number of queue pairs added before it broke; 0: it is not broken
	why reason.Number
}

// markBroken marks an object as broken.
func (t *Table) markBroken(b *broken, why reason.Number) {
	*b = broken{t.added, why}
	t.unchecked = len(t.order)
}
