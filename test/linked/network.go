package linked

import (
	"container/heap"
	"math/rand/v2"
	"sync"
)

// Network is a virtual clock with its events. All its ports share its lock, so different goroutines may drive them; a
// run can be repeated only if one goroutine drives them all.
type Network struct {
	mu     sync.Mutex
	now    int64
	seq    uint64
	events eventHeap
	rng    *rand.Rand
	seed   uint64
	trace  func(Event)
}

// Fates of a frame, for Event.What.
const (
	Sent       = "sent"
	Delivered  = "delivered"
	Lost       = "lost"
	Duplicated = "duplicated"
	Reordered  = "reordered"
	Corrupted  = "corrupted"
	Overrun    = "overrun" // the receiver's ring or pool was full
	Oversize   = "oversize"
)

// Event is one line of a run's transcript. Frame is valid only during the call.
type Event struct {
	At    int64  // nanoseconds on the virtual clock
	From  string // the sending port's name
	What  string
	Frame []byte
}

// New makes a network whose clock reads 0. The test should print the seed.
func New(seed uint64) *Network {
	return &Network{seed: seed, rng: rand.New(rand.NewPCG(seed, 0x75726d61))}
}

// Seed returns New's argument.
func (n *Network) Seed() uint64 { return n.seed }

// Trace makes the network report the fate of each frame to f, in order. f must not call the network.
func (n *Network) Trace(f func(Event)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.trace = f
}

// Now returns the virtual time in nanoseconds.
func (n *Network) Now() int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.now
}

// Next returns the time of the next event; ok is false if there is none.
func (n *Network) Next() (at int64, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.events) == 0 {
		return 0, false
	}
	return n.events[0].at, true
}

// Advance moves the clock to the given time and delivers everything due until then, each at its own time. A time in
// the past changes nothing.
func (n *Network) Advance(to int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.run(to)
	n.now = max(n.now, to)
}

// run executes the events up to and including to. The caller holds the lock.
func (n *Network) run(to int64) {
	for len(n.events) > 0 && n.events[0].at <= to {
		e := heap.Pop(&n.events).(event)
		n.now = max(n.now, e.at)
		e.do()
	}
}

// at schedules do. Events of equal times run in the order of scheduling.
func (n *Network) at(t int64, do func()) {
	n.seq++
	heap.Push(&n.events, event{at: max(t, n.now), seq: n.seq, do: do})
}

func (n *Network) report(from, what string, frame []byte) {
	if n.trace != nil {
		n.trace(Event{At: n.now, From: from, What: what, Frame: frame})
	}
}

type event struct {
	at  int64
	seq uint64
	do  func()
}

type eventHeap []event

func (h eventHeap) Len() int { return len(h) }
func (h eventHeap) Less(i, j int) bool {
	if h[i].at != h[j].at {
		return h[i].at < h[j].at
	}
	return h[i].seq < h[j].seq
}
func (h eventHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *eventHeap) Push(x any)   { *h = append(*h, x.(event)) }
func (h *eventHeap) Pop() any {
	old := *h
	e := old[len(old)-1]
	old[len(old)-1] = event{}
	*h = old[:len(old)-1]
	return e
}
