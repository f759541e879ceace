package qp

import (
	"encoding/binary"
	"net/netip"

	"urdma/urdmad/mem"
	"urdma/verbs/abi"
	"urdma/verbs/ring"
)

// SendState says how far a send work request has come.
type SendState uint8

const (
	SendQueued SendState = iota // not all of it handed to the carrier
	SendSent                    // all of it was handed to the carrier once
	SendFailed                  // found wrong: completes with its status when it is the oldest
)

// SendWR is urdmad's private copy of a send work request.
type SendWR struct {
	Op         *abi.Operation
	Flags      uint32 // enum ibv_send_flags
	RKey       mem.STag
	STag       mem.STag // to invalidate or to bind; of a message of an XRC_SEND queue pair: the number of the shared receive queue
	Immediate  uint32   // as the program stored it: network byte order
	RemoteAddr uint64
	CompareAdd uint64 // atomics
	Swap       uint64
	Length     uint32
	State      SendState
	Started    bool   // it has its message number
	Answered   bool   // Read: all of the response has arrived
	MSN        uint32 // among the messages that take a receive, or among Reads; from 1 in each connection
	Sent       uint32 // bytes handed to the carrier
	AllSent    bool   // with immediate: the bytes went, the immediate data comes next
	Got        uint32 // Read: bytes of the response placed
	Found      *Found // atomic between two queue pairs of this urdmad: what was there
	Mark       uint64 // done, as far as the carrier goes, once Acknowledge reaches it

	id         uint64
	status     uint32
	vendor     uint32
	nsge       int
	src        []byte // inline data; else nil
	stage      *Stage // source on the fallback path; else nil
	asyncUntil uint64 // Read, or work on a window: completes once jobs.done reached this
}

// Found is what an atomic operation found.
type Found struct {
	Done     bool
	Original uint64
}

// renew makes wr the work request of a slot. What it held was released, so that
// src and stage are nil.
func (wr *SendWR) renew(slot *abi.SQE) {
	wr.Op, wr.Flags, wr.id = operationOf(slot.Opcode), slot.Flags, slot.WRID
	wr.RKey, wr.STag, wr.RemoteAddr = mem.STag(slot.RKey), mem.STag(slot.ImmOrSTag), slot.RemoteAddr
	wr.Immediate, wr.CompareAdd, wr.Swap, wr.Found = slot.ImmOrSTag, slot.CompareAdd, slot.Swap, nil
	wr.State, wr.Started, wr.Answered, wr.AllSent = SendQueued, false, false, false
	wr.Length, wr.MSN, wr.Sent, wr.Got, wr.Mark = 0, 0, 0, 0, 0
	wr.vendor, wr.nsge, wr.asyncUntil = 0, 0, 0
}

// Destination is where a message of a queue pair of type UD goes: an address, not
// valid if the client got it wrong, a queue pair number and its Q_Key.
func (wr *SendWR) Destination() (addr netip.Addr, qpn, qkey uint32) {
	var b [16]byte
	binary.NativeEndian.PutUint64(b[:], wr.CompareAdd)
	binary.NativeEndian.PutUint64(b[8:], wr.Swap)
	return netip.AddrFrom16(b).Unmap(), uint32(wr.RemoteAddr), uint32(wr.RemoteAddr >> 32)
}

// IsRead reports an RDMA Read, or an atomic, which is much like one: its list is
// written, and it ends with an answer.
func (wr *SendWR) IsRead() bool { return wr.Op.WritesLocal }

// element is a scatter/gather element that was checked: n bytes at va of
// region. bytes is nil on the fallback path.
type element struct {
	region *mem.Region
	va     uint64
	n      uint32
	bytes  []byte
}

// SendQueue holds the work requests from the oldest that has not completed to
// the newest fetched: head..tail are outstanding, next is the one that the
// carrier moves. Indices run freely; slot = index & mask.
type SendQueue struct {
	ring ring.ServerSQ
	slots
	head, next, tail uint32

	orderedMSN uint32 // of the next message that takes a receive
	readMSN    uint32 // of the next Read
	reads      int    // Reads begun and not answered
	maxReads   int    // of them at a time, agreed on with the peer
	takes      Messages
	stages     int  // work requests with a stage
	more       bool // the client has posted more than was fetched
	draining   bool // no send begins
	failed     bool // from a send on, which the ring names, all complete with an entry
}

func (s *SendQueue) init(r ring.ServerSQ, entries, maxSGE uint32) {
	s.ring = r
	s.slots.init(entries, int(max(maxSGE, 1)))
}

// connect begins a connection: messages are numbered from 1.
func (s *SendQueue) connect(maxReads uint16, takes Messages) {
	s.orderedMSN, s.readMSN, s.reads, s.maxReads, s.takes = 1, 1, 0, int(maxReads), takes
}

// agreed reports whether the peer takes what a work request would send.
func (s *SendQueue) agreed(op *abi.Operation) bool {
	switch {
	case op.Immediate && s.takes&ImmediateData == 0, op.Atomic && s.takes&Atomics == 0:
		return false
	}
	return !op.WritesLocal || s.maxReads > 0
}

// Head, Next and Tail are the indices of the oldest work request, of the one to
// be moved next, and one past the newest.
func (s *SendQueue) Head() uint32 { return s.head }

// Next is the index of the work request to be moved next; Tail if there is none.
func (s *SendQueue) Next() uint32 { return s.next }

// Tail is one past the index of the newest work request.
func (s *SendQueue) Tail() uint32 { return s.tail }

// Slots is the number of slots.
func (s *SendQueue) Slots() int { return int(s.mask) + 1 }

// Outstanding is how many work requests wait for completion.
func (s *SendQueue) Outstanding() int { return int(s.tail - s.head) }

// Empty reports that nothing is outstanding, and that all that was posted before the
// last look was fetched.
func (s *SendQueue) Empty() bool { return s.head == s.tail && !s.more }

// Holds reports whether an index is that of an outstanding work request.
func (s *SendQueue) Holds(i uint32) bool { return i-s.head < s.tail-s.head }

// Index is the index of the outstanding work request in a slot.
func (s *SendQueue) Index(slot uint32) uint32 { return s.head + (slot-s.head)&s.mask }

// Moved says that the carrier was handed n bytes more of the work request at Next,
// the last of them with a mark.
func (s *SendQueue) Moved(n uint32, mark uint64) {
	wr := s.At(s.next)
	wr.Mark = mark
	wr.Sent += n
	if wr.stage != nil {
		wr.stage.Sent(wr.Sent, mark)
	}
}

// Advance says that the work request at Next was handed to the carrier whole.
func (s *SendQueue) Advance() {
	s.At(s.next).State = SendSent
	s.next++
}

// ready reports whether the work request at Next may move now, and starts its
// message: numbers it and counts its Read.
func (s *SendQueue) ready() bool {
	if s.next == s.tail {
		return false
	}
	wr := s.At(s.next)
	if wr.State != SendQueued {
		return false
	}
	if !wr.IsRead() && !wr.AllSent && !wr.Here(wr.Sent) {
		return false
	}
	if wr.Started {
		return true
	}
	if !s.mayStart(wr) {
		return false
	}
	s.start(wr)
	return true
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

func (s *SendQueue) start(wr *SendWR) {
	wr.Started = true
	switch {
	case wr.IsRead():
		wr.MSN = s.readMSN
		s.readMSN++
		s.reads++
	case wr.Op.TakesReceive:
		wr.MSN = s.orderedMSN
		s.orderedMSN++
	}
}

// oldestFailed reports whether the oldest work request was found wrong.
func (s *SendQueue) oldestFailed() bool {
	return s.head != s.tail && s.At(s.head).State == SendFailed
}

// release gives back what work request i holds.
func (s *SendQueue) release(i uint32) {
	list := s.list(i)
	for j := range list {
		list[j].region.Release()
		list[j] = element{}
	}
	wr := s.At(i)
	s.dropStage(wr)
	wr.nsge, wr.src = 0, nil
	s.passed(i, s.tail)
}

// drop forgets all work without completing it.
func (s *SendQueue) drop() {
	for i := s.head; i != s.tail; i++ {
		s.release(i)
	}
	s.head, s.next = s.tail, s.tail
	s.reads = 0
}

// reset also skips what the client has posted meanwhile.
func (s *SendQueue) reset() {
	if prod, err := s.ring.Prod(s.tail); err == nil {
		s.head, s.next, s.tail = prod, prod, prod
	}
	s.failed, s.more, s.draining = false, false, false
	s.ring.ClearFailed()
	s.publish()
}

// slotsAhead is how many slots before its turn the lines of a slot are asked for.
// A line that another core wrote takes as long as checking a work request or two;
// without it that wait was a sixth of the worker's time with messages of 64 bytes.
const slotsAhead = 4

// prefetch asks for the slots from index asked on that will soon be fetched, none
// of them at prod or behind it. It returns the first that it did not ask for.
func (s *SendQueue) prefetch(asked, prod uint32) uint32 {
	for int32(prod-asked) > 0 && asked-s.tail <= slotsAhead {
		s.ring.Prefetch(asked)
		asked++
	}
	return asked
}

// publish tells the client which sends are complete.
func (s *SendQueue) publish() { s.ring.PublishCons(s.head) }

// fail tells the client that from the oldest send on all complete with an entry.
func (s *SendQueue) fail() {
	if !s.failed {
		s.failed = true
		s.ring.PublishFailed(s.head)
	}
}

// recover ends what fail began: the send queue works again.
func (s *SendQueue) recover() {
	s.failed = false
	s.ring.ClearFailed()
}

// Posted is how many work requests the client has posted and not had completed,
// those included that were not fetched yet.
func (s *SendQueue) Posted() int {
	if prod, err := s.ring.Prod(s.head); err == nil {
		return int(prod - s.head)
	}
	return s.Outstanding()
}

// Draining reports whether sends that were begun before a move to SQD are still
// under way.
func (s *SendQueue) Draining() bool { return s.draining && !s.untouched() }

// untouched reports that no outstanding send has begun or failed.
func (s *SendQueue) untouched() bool {
	return !s.failed && s.head == s.next && (s.next == s.tail || !s.At(s.next).Started)
}

// idle reports that nothing is outstanding and nothing was posted.
func (s *SendQueue) idle() bool {
	if s.head != s.tail {
		return false
	}
	prod, err := s.ring.Prod(s.tail)
	return err == nil && prod == s.tail
}
