package pathmtu

import (
	"container/heap"
	"net/netip"
	"slices"
)

const (
	// firstWait is how long the first answer is waited for, at first.
	firstWait = int64(50e6)
	// firstTries probes go before a peer counts as one that doesn't answer.
	firstTries = 3
	// tries is how often a size is probed (MAX_PROBES, RFC 8899 section 5.1.2).
	tries = 3
	// After the first answer the others are close behind, or have waited in a
	// queue.
	minWait, maxWait = int64(10e6), int64(200e6)
	// rungs are how many sizes between the limits are tried at once, and close is
	// how far apart these may be in the end.
	rungs = 8
	close = 16
)

// search is under way: low arrives whole; what is above high does not, or can't.
type search struct {
	nonce     uint32
	low, high int   // low 0: nothing has been answered
	most      int   // what both ends take
	sizes     []int // being tried, ascending
	sent      int   // how often
	at        int64 // when to go on
	began     int64 // when these sizes were last sent
	wait      int64 // for answers
	between   bool  // sizes between the limits have been tried
}

// begin begins a search: base, what is known, and the most that could be.
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

// Answered takes a peer's answer to a probe of size bytes; most is what the peer
// takes at most.
func (t *Table) Answered(now int64, peer netip.Addr, nonce uint32, size, most int) []Outgoing {
	e := t.entries[peer]
	if e != nil && e.search == nil && e.size == 0 && e.asked == nonce {
		e.checked = 0 // it was held up, or we were: not one that doesn't answer
	}
	if e == nil || e.search == nil || e.search.nonce != nonce || !slices.Contains(e.search.sizes, size) {
		return nil
	}
	s := e.search
	if s.low == 0 { // the first: now the round trip is known
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
		s.sizes = slices.DeleteFunc(s.sizes, func(size int) bool { return size >= most }) // a peer may say so often
		s.sizes = append(s.sizes, most)
		out := s.send(now, e.to)
		heap.Fix(&t.searching, e.index)
		return out
	}
	return nil
}

// next goes on with a search whose answers have been waited for.
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
		t.finish(now, e, s.low) // as it was
		return nil
	}
	return t.narrow(now, e)
}

// narrow takes the least size that was not answered as too long, and tries others
// below it. The most that could be is tried along with them: it may have been
// lost for another reason.
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
