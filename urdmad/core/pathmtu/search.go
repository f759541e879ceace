package pathmtu

import (
	"container/heap"
	"net/netip"
	"slices"
)

const (
	// firstWait is the initial time to wait for the first answer.
	firstWait = int64(50e6)
	// firstTries is the number of unanswered probes after which a peer counts as not answering.
	firstTries = 3
	// tries is how often a size is probed (MAX_PROBES, RFC 8899 section 5.1.2).
	tries = 3
	// Limits of the time to wait for further answers after the first one.
	minWait, maxWait = int64(10e6), int64(200e6)
	// rungs is the number of sizes between the limits that are probed at once, and close the greatest
	// distance of the limits at the end.
	rungs = 8
	close = 16
)

// search is a search in progress: datagrams of length low arrive; longer ones than high do not, or can't be
// sent.
type search struct {
	nonce     uint32
	low, high int   // low is 0 before the first answer
	most      int   // largest size of both ends
	sizes     []int // sizes being probed, ascending
	sent      int   // how often they were probed
	at        int64 // when the search continues
	began     int64 // when these sizes were last probed
	wait      int64 // time to wait for answers
	between   bool  // sizes between the limits have been probed
}

// begin begins a search with the base size, the known size and the largest possible size.
func (t *Table) begin(now int64, e *entry) []Outgoing {
	s := &search{nonce: t.random(), high: t.most, most: t.most, wait: firstWait, sizes: []int{t.base}}
	if e.size > t.base && e.size < t.most {
		s.sizes = append(s.sizes, e.size)
	}
	if t.most > t.base {
		s.sizes = append(s.sizes, t.most)
	}
	e.search = s
	out := s.send(now, e.to)
	heap.Push(&t.searching, e)
	return out
}

// send probes the sizes that have not been answered.
func (s *search) send(now int64, to netip.AddrPort) (out []Outgoing) {
	s.sent++
	s.began, s.at = now, now+s.wait
	for _, size := range s.sizes {
		if size > s.low && (size <= s.high || size == s.most) {
			out = append(out, Outgoing{To: to, Nonce: s.nonce, Size: size})
		}
	}
	return out
}

// Answered handles a peer's answer to a probe of size bytes; most is the peer's largest size.
func (t *Table) Answered(now int64, peer netip.Addr, nonce uint32, size, most int) []Outgoing {
	e := t.entries[peer]
	if e != nil && e.search == nil && e.size == 0 && e.asked == nonce {
		e.checked = 0 // the answer was delayed: the peer does answer
	}
	if e == nil || e.search == nil || e.search.nonce != nonce || !slices.Contains(e.search.sizes, size) {
		return nil
	}
	s := e.search
	if s.low == 0 { // the first answer: now the round-trip time is known
		s.wait = min(max(2*(now-s.began), minWait), maxWait)
		s.at, s.sent = now+s.wait, 1
		heap.Fix(&t.searching, e.index)
	}
	s.low = max(s.low, size)
	s.high = max(s.low, min(s.high, most))
	if s.high-s.low < close {
		t.found(now, e)
		return nil
	}
	if most < s.most {
		s.most, s.sent = most, 0
		s.sizes = slices.DeleteFunc(s.sizes, func(size int) bool { return size >= most }) // most may come again
		s.sizes = append(s.sizes, most)
		out := s.send(now, e.to)
		heap.Fix(&t.searching, e.index)
		return out
	}
	return nil
}

// next continues a search after the time to wait for answers.
func (t *Table) next(now int64, e *entry) []Outgoing {
	s := e.search
	switch {
	case s.low == 0 && s.sent < firstTries:
		s.wait *= 2
		return s.send(now, e.to)
	case s.low == 0:
		t.finish(now, e, 0)
		return nil
	case s.sent < tries:
		return s.send(now, e.to)
	case !s.between && s.low == e.size && e.searched > 0 && now-e.searched < raiseAfter:
		t.finish(now, e, s.low) // the result is unchanged
		return nil
	}
	return t.narrow(now, e)
}

// narrow takes the smallest unanswered size as too long, and probes sizes below it. It also probes the
// largest possible size again, because that may have been lost for another reason.
func (t *Table) narrow(now int64, e *entry) []Outgoing {
	s := e.search
	for _, size := range s.sizes {
		if size > s.low {
			s.high = min(s.high, size-1)
			break
		}
	}
	if s.high-s.low < close {
		t.found(now, e)
		return nil
	}
	s.sizes = s.sizes[:0]
	step := max((s.high-s.low)/rungs, close/2)
	for size := s.low + step; size <= s.high; size += step {
		s.sizes = append(s.sizes, size)
	}
	s.sizes = append(s.sizes, s.most)
	s.between, s.sent = true, 0
	return s.send(now, e.to)
}

func (t *Table) found(now int64, e *entry) {
	e.searched = now
	t.finish(now, e, e.search.low)
}
