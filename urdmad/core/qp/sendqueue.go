package qp

import (
	"urdma/verbs/abi"
	"urdma/verbs/ring"
)

// SendQueue holds the work requests from the oldest one that has not completed to the newest one
// fetched: head to tail are outstanding, and next is the one that the carrier sends next. Indices
// are free-running; slot = index & mask.
type SendQueue struct {
	ring ring.ServerSQ
	slots
	head, next, tail uint32

	orderedMSN uint32   // number of the next message that takes a receive
	readMSN    uint32   // number of the next Read
	reads      int      // Reads begun whose answers we have not acknowledged
	settling   []uint64 // for each answered one of them: acknowledged once jobs.done has reached this
	maxReads   int      // limit of reads, agreed on with the peer
	accepts    Messages
	readAheads int  // number of work requests with a ReadAhead
	more       bool // the client has posted more than was fetched
	draining   bool // state SQD: no send begins
	failed     bool // all sends from the ring's failed index on write a completion
}

func (s *SendQueue) init(r ring.ServerSQ, entries, maxSGE uint32) {
	s.ring = r
	s.slots.init(entries, int(max(maxSGE, 1)))
}

// connect resets the state of a connection: messages are numbered from 1.
func (s *SendQueue) connect(maxReads uint16, accepts Messages) {
	s.orderedMSN, s.readMSN, s.reads, s.settling, s.maxReads, s.accepts = 1, 1, 0, nil, int(maxReads), accepts
}

// agreed reports whether the peer accepts the message of a work request.
func (s *SendQueue) agreed(op *abi.Operation) bool {
	switch {
	case op.Immediate && s.accepts&ImmediateData == 0, op.Atomic && s.accepts&Atomics == 0:
		return false
	}
	return !op.WritesLocal || s.maxReads > 0
}

// Head returns the index of the oldest work request.
func (s *SendQueue) Head() uint32 { return s.head }

// Next returns the index of the work request to send next; it is Tail if there is none.
func (s *SendQueue) Next() uint32 { return s.next }

// Tail returns the index after the newest work request.
func (s *SendQueue) Tail() uint32 { return s.tail }

// Slots returns the number of slots; 0 for a queue pair without a send queue.
func (s *SendQueue) Slots() int { return s.ring.Slots() }

// ReadsOutstanding reports whether a Read or an atomic has begun whose answer has not come.
func (s *SendQueue) ReadsOutstanding() bool { return s.reads > 0 }

// Outstanding returns the number of fetched work requests that have not completed.
func (s *SendQueue) Outstanding() int { return int(s.tail - s.head) }

// Empty reports whether nothing is outstanding and every post that the last fetch saw was
// fetched.
func (s *SendQueue) Empty() bool { return s.head == s.tail && !s.more }

// Holds reports whether index i is that of an outstanding work request.
func (s *SendQueue) Holds(i uint32) bool { return i-s.head < s.tail-s.head }

// Index returns the index of the outstanding work request in a slot.
func (s *SendQueue) Index(slot uint32) uint32 { return s.head + (slot-s.head)&s.mask }

// oldestFailed reports whether the oldest work request is invalid.
func (s *SendQueue) oldestFailed() bool {
	return s.head != s.tail && s.At(s.head).State == SendFailed
}

// release releases the regions and memory that work request i uses.
func (s *SendQueue) release(i uint32) {
	wr := s.At(i)
	for j := range wr.list {
		wr.list[j].region.Release()
		wr.list[j] = element{}
	}
	s.dropReadAhead(wr)
	wr.list, wr.src = wr.list[:0], nil
	s.passed(i, s.tail)
}

// drop removes all work requests without completing them.
func (s *SendQueue) drop() {
	for i := s.head; i != s.tail; i++ {
		s.release(i)
	}
	s.head, s.next = s.tail, s.tail
	s.reads, s.settling = 0, nil
}

// reset also skips posts that were not fetched.
func (s *SendQueue) reset() {
	if prod, err := s.ring.Prod(s.tail); err == nil {
		s.head, s.next, s.tail = prod, prod, prod
	}
	s.failed, s.more, s.draining = false, false, false
	s.ring.ClearFailed()
	s.publish()
}

// slotsAhead is how many slots ahead the cache lines of a slot are prefetched. Loading a line
// that another core has written takes as long as checking one or two work requests; without
// prefetching, that was a sixth of the worker's time with messages of 64 bytes.
const slotsAhead = 4

// prefetch prefetches the slots that will soon be fetched, from index asked on and before prod.
// It returns the first index not prefetched.
func (s *SendQueue) prefetch(asked, prod uint32) uint32 {
	for int32(prod-asked) > 0 && asked-s.tail <= slotsAhead {
		s.ring.Prefetch(asked)
		asked++
	}
	return asked
}

// publish tells the client which sends have completed.
func (s *SendQueue) publish() { s.ring.PublishCons(s.head) }

// fail tells the client that all sends from the oldest on write a completion.
func (s *SendQueue) fail() {
	if !s.failed {
		s.failed = true
		s.ring.PublishFailed(s.head)
	}
}

// recover undoes fail: the send queue works again.
func (s *SendQueue) recover() {
	s.failed = false
	s.ring.ClearFailed()
}

// Posted returns the number of work requests posted but not completed, including posts not
// fetched yet.
func (s *SendQueue) Posted() int {
	if prod, err := s.ring.Prod(s.head); err == nil {
		return int(prod - s.head)
	}
	return s.Outstanding()
}

// Draining reports whether sends begun before a move to SQD are unfinished.
func (s *SendQueue) Draining() bool { return s.draining && !s.untouched() }

// untouched reports whether no outstanding send has begun or failed.
func (s *SendQueue) untouched() bool {
	return !s.failed && s.head == s.next && (s.next == s.tail || !s.At(s.next).Started)
}

// idle reports whether nothing is outstanding and nothing is posted.
func (s *SendQueue) idle() bool {
	if s.head != s.tail {
		return false
	}
	prod, err := s.ring.Prod(s.tail)
	return err == nil && prod == s.tail
}

func (s *SendQueue) setReadAhead(wr *SendWR, v *ReadAhead) {
	wr.ahead = v
	s.readAheads++
}

func (s *SendQueue) dropReadAhead(wr *SendWR) {
	if wr.ahead != nil {
		wr.ahead.Drop()
		wr.ahead = nil
		s.readAheads--
	}
}

// readAheadsAcked frees the chunks of outstanding work requests that the peer has acknowledged,
// up to mark.
func (s *SendQueue) readAheadsAcked(mark uint64) {
	if s.readAheads == 0 {
		return
	}
	for i := s.head; i != s.tail && i != s.next+1; i++ {
		if v := s.At(i).ahead; v != nil {
			v.Acked(mark)
		}
	}
}

func (s *SendQueue) mayStart(wr *SendWR) bool {
	switch {
	case s.draining:
		return false
	case wr.Flags&abi.SendFence != 0 && s.reads > 0:
		return false // earlier Reads first (ibv_post_send(3); RFC 5040 section 5.5)
	}
	return !wr.IsRead() || s.reads < s.maxReads
}

// advance records that the work request at Next was handed to the carrier completely.
func (s *SendQueue) advance() {
	s.At(s.next).State = SendSent
	s.next++
}
