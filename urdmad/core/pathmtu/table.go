package pathmtu

import (
	"container/heap"
	"math"
	"net/netip"

	"urdma/urdmad/core/due"
)

// Times, in nanoseconds.
const (
	never = math.MaxInt64
	// freshFor is how long a result is used without a new search.
	freshFor = int64(1e9)
	// silentFor is how long a peer that did not answer is not probed again.
	silentFor = int64(10e9)
	// raiseAfter is how long after a search a path that carried less than both ends can send is not probed
	// for more (PMTU_RAISE_TIMER, RFC 8899 section 5.1.1).
	raiseAfter = int64(600e9)
	// suspectEvery is the least time between searches on a path that lets nothing through.
	suspectEvery = int64(250e6)
	maxEntries   = 4096
)

// Outgoing is a probe to send: a datagram of Size bytes.
type Outgoing struct {
	To    netip.AddrPort // the peer's socket
	Nonce uint32
	Size  int
}

// Table has the path MTUs to the peers of a port, by their IP addresses.
type Table struct {
	// Changed, if set, is called when the MTU of a path has changed.
	Changed func(peer netip.Addr, size int)

	base, most int
	random     func() uint32
	entries    map[netip.Addr]*entry
	searching  due.Heap[*entry] // entries with a search, by its time
}

// entry is the path to a peer.
type entry struct {
	to       netip.AddrPort
	size     int   // largest size that arrived; 0: none has
	checked  int64 // when size was found, or that the peer is silent
	searched int64 // when sizes greater than size were last probed
	search   *search
	asked    uint32 // nonce of the last completed search
	index    int    // index in Table.searching
	waiting  []func()
}

// Due and Stands implement due.Entry for entries with a search.
func (e *entry) Due() int64       { return e.search.at }
func (e *entry) Stands(index int) { e.index = index }

// New returns the empty table of a port that sends and receives datagrams of up to most bytes. base is the
// size that every path is assumed to carry; random must return unpredictable numbers.
func New(base, most int, random func() uint32) *Table {
	return &Table{base: min(base, most), most: most, random: random, entries: map[netip.Addr]*entry{}}
}

// Size returns the largest size known to reach a peer; false: nothing is known.
func (t *Table) Size(peer netip.Addr) (int, bool) {
	e := t.entries[peer]
	if e == nil || e.size == 0 {
		return 0, false
	}
	return e.size, true
}

// Find calls done once the path to a peer's socket has been searched, or the peer has not answered: during
// the call if that happened recently. The time is in nanoseconds. done may be nil.
func (t *Table) Find(now int64, to netip.AddrPort, done func()) []Outgoing {
	if done == nil {
		done = func() {}
	}
	e := t.entry(now, to)
	switch {
	case e == nil || e.search == nil && e.recent(now):
		done()
		return nil
	case e.search != nil:
		e.waiting = append(e.waiting, done)
		return nil
	}
	e.to = to
	e.waiting = append(e.waiting, done)
	return t.begin(now, e)
}

// Suspect starts a new search on a path that lets nothing through.
func (t *Table) Suspect(now int64, to netip.AddrPort) []Outgoing {
	e := t.entry(now, to)
	if e == nil || e.search != nil || e.checked > 0 && now-e.checked < suspectEvery || e.size == 0 && e.recent(now) {
		return nil
	}
	e.to = to
	return t.begin(now, e)
}

// entry returns the entry of a peer, which is created if there is room.
func (t *Table) entry(now int64, to netip.AddrPort) *entry {
	e := t.entries[to.Addr()]
	if e != nil {
		return e
	}
	if len(t.entries) >= maxEntries && !t.forget(now) {
		return nil
	}
	e = &entry{}
	t.entries[to.Addr()] = e
	return e
}

// lookMost is the number of entries of a full table that are examined for one to remove.
const lookMost = 32

// forget removes an entry that was not used recently, or else one of a peer that does not answer, because a
// program that uses many addresses creates such entries. It returns false if it finds none.
func (t *Table) forget(now int64) bool {
	looked, silent := 0, netip.Addr{}
	for peer, e := range t.entries { // the order is random
		if e.search == nil && !e.recent(now) {
			delete(t.entries, peer)
			return true
		}
		if e.search == nil && e.size == 0 {
			silent = peer
		}
		if looked++; looked == lookMost {
			break
		}
	}
	delete(t.entries, silent)
	return silent.IsValid()
}

// recent reports whether the entry's result may be used without a new search.
func (e *entry) recent(now int64) bool {
	if e.checked == 0 {
		return false
	}
	if e.size == 0 {
		return now-e.checked < silentFor
	}
	return now-e.checked < freshFor
}

// Deadline returns when Tick is due.
func (t *Table) Deadline() int64 {
	if len(t.searching) == 0 {
		return never
	}
	return t.searching[0].search.at
}

// Tick continues the searches that are due.
func (t *Table) Tick(now int64) (out []Outgoing) {
	for t.Deadline() <= now {
		e := t.searching[0]
		out = append(out, t.next(now, e)...)
		if e.search != nil {
			heap.Fix(&t.searching, e.index) // the search set a later time
		}
	}
	return out
}

// finish ends a search. With a size of 0 the previous result is kept.
func (t *Table) finish(now int64, e *entry, size int) {
	heap.Remove(&t.searching, e.index)
	e.asked = e.search.nonce
	e.search, e.checked = nil, now
	before := e.size
	if size > 0 {
		e.size = size
	}
	if t.Changed != nil && size > 0 && size != before {
		t.Changed(e.to.Addr(), size)
	}
	waiting := e.waiting
	e.waiting = nil
	for _, done := range waiting {
		done()
	}
}
