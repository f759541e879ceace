package enginetest

import (
	"slices"
	"time"

	"urdma/urdmad/core/clock"
	"urdma/verbs/abi"
)

// endTime is how long the side that is left is looked at: a connection by number waits
// for a peer that comes again.
const endTime = 3 * time.Second

// ReceiverLeaves runs the workload until the second side has received some message, and then
// destroys its queue pair at once. The first side's work must complete at least up to that
// message, or up to a Read whose answer the network has lost.
func (t *Traffic) ReceiverLeaves(limit time.Duration) {
	t.w.T.Helper()
	x, y := t.sides[0], t.sides[1]
	stop := t.w.Rand.IntN(len(y.recvs) + 1)
	t.w.Until("a message", limit, func() bool { return t.Step() || y.recvDone >= stop })
	x.ending = true
	y.q.Leave()
	x.pollOn()
	if y.recvDone == 0 {
		return
	}
	last := x.indexOfSend(y.recvDone - 1)
	for x.completed <= last && !x.plan[x.completed].signaled {
		x.completed++
	}
	e := x.sendError
	if e != nil && abi.OperationOf(x.plan[e.WRID].code).WritesLocal {
		return
	}
	if x.completed <= last || e != nil && e.WRID <= uint64(last) {
		x.fail("%d work requests have completed, then %+v, and the peer has received number %d", x.completed, e, last)
	}
}

// SenderEnds runs the workload until the first side has posted some of it, and then ends that
// program at once. All posted messages must arrive, except those that the network delayed for
// longer than control waits.
func (t *Traffic) SenderEnds(limit time.Duration) {
	t.w.T.Helper()
	x, y := t.sides[0], t.sides[1]
	stop := t.w.Rand.IntN(len(x.plan) + 1)
	t.w.Until("posts", limit, func() bool { return t.Step() || x.posted >= stop })
	x.ending, y.ending = true, true
	sent := x.q.Leave()
	x.forget()
	y.pollOn()
	if !sent || x.posted == 0 {
		return
	}
	if messages := x.plan[x.posted-1].sends; y.recvDone < messages {
		y.fail("%d messages received, then %+v, and the peer has posted %d", y.recvDone, y.recvError, messages)
	}
	y.checkWrites(x.posted)
}

// forget clears the source of what a side has sent: its program has ended. What it was
// is kept for the checks.
func (s *side) forget() {
	for i := range s.plan {
		if o := &s.plan[i]; !abi.OperationOf(o.code).WritesLocal {
			for j, b := range o.content {
				o.content[j] = slices.Clone(b)
			}
		}
	}
	kept := *s.src
	kept.Bytes = slices.Clone(s.src.Bytes)
	clear(s.src.Bytes)
	s.src = &kept
}

// pollOn polls until nothing comes any more.
func (s *side) pollOn() {
	s.w.T.Helper()
	for end := s.w.Now() + clock.Time(endTime); s.w.Now() < end; s.w.Pass(10 * time.Millisecond) {
		s.poll()
	}
}

// over takes a completion with an error, which a workload that ends early may have, and
// behind the first nothing else.
func (s *side) over(first **abi.CQE, e *abi.CQE) bool {
	s.w.T.Helper()
	switch {
	case e.Status == abi.StatusSuccess && *first == nil:
		return false
	case e.Status == abi.StatusSuccess || !s.ending:
		s.fail("completion %+v behind %+v", *e, *first)
	case *first == nil:
		one := *e
		*first = &one
	}
	return true
}
