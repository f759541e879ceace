package qp

import (
	"encoding/binary"
	"net/netip"

	"urdma/urdmad/core/mem"
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
	Op        *abi.Operation
	Flags     uint32 // enum ibv_send_flags
	RKey      mem.STag
	STag      mem.STag // to invalidate or to bind; of a message of an XRC_SEND queue pair: the number of the shared receive queue
	Immediate uint32   // as the program stored it: network byte order
	Length    uint32
	State     SendState
	Started   bool   // it has its message number
	MSN       uint32 // among the messages that take a receive, or among Reads; from 1 in each connection

	sent     uint32 // bytes handed to the carrier
	bytesOut bool   // all bytes were; the immediate data comes next
	answered bool   // Read: all of the response has arrived
	got      uint32 // Read: bytes of the response placed
	mark     uint64 // done, as far as the carrier goes, once Acknowledge reaches it

	// The slot's operands: see RemoteAddr, AtomicOp, Destination and binding.
	remote, operand1, operand2 uint64

	id         uint64
	index      uint32 // in the send queue
	status     uint32
	vendor     uint32
	list       []element // of its scatter/gather list; its room is the chunk's
	src        []byte    // inline data; else nil
	stage      *Stage    // source on the fallback path; else nil
	asyncUntil uint64    // Read, or work on a window: completes once jobs.done reached this
}

// renew makes wr the work request of a slot, at an index of the send queue. What it held was released, so that
// list is empty, src and stage are nil.
func (wr *SendWR) renew(slot *abi.SQE, index uint32) {
	wr.index = index
	wr.Op, wr.Flags, wr.id = operationOf(slot.Opcode), slot.Flags, slot.WRID
	wr.RKey, wr.STag, wr.Immediate = mem.STag(slot.RKey), mem.STag(slot.ImmOrSTag), slot.ImmOrSTag
	wr.remote, wr.operand1, wr.operand2 = slot.RemoteAddr, slot.CompareAdd, slot.Swap
	wr.State, wr.Started, wr.answered, wr.bytesOut = SendQueued, false, false, false
	wr.Length, wr.MSN, wr.sent, wr.got, wr.mark = 0, 0, 0, 0, 0
	wr.vendor, wr.asyncUntil = 0, 0
}

func (wr *SendWR) request() request { return request{send: true, index: wr.index} }

// ID is its wr_id.
func (wr *SendWR) ID() uint64 { return wr.id }

// RemoteAddr is where a Write, a Read or an atomic operation begins in the peer's memory.
func (wr *SendWR) RemoteAddr() uint64 { return wr.remote }

// AtomicOp is what an atomic work request asks for.
func (wr *SendWR) AtomicOp() mem.AtomicOp {
	if wr.Op.Completion == abi.WCCompSwap {
		return mem.AtomicOp{Data: wr.operand2, Mask: ^uint64(0), Compare: wr.operand1, CompareMask: ^uint64(0)}
	}
	return mem.AtomicOp{Add: true, Data: wr.operand1}
}

// Destination is where a message of a queue pair of type UD goes: an address, not
// valid if the client got it wrong, a queue pair number and its Q_Key.
func (wr *SendWR) Destination() (addr netip.Addr, qpn, qkey uint32) {
	var b [16]byte
	binary.NativeEndian.PutUint64(b[:], wr.operand1)
	binary.NativeEndian.PutUint64(b[8:], wr.operand2)
	return netip.AddrFrom16(b).Unmap(), uint32(wr.remote), uint32(wr.remote >> 32)
}

// binding is what a work request that binds a memory window asks for.
func (wr *SendWR) binding(by mem.User) mem.Binding {
	return mem.Binding{STag: wr.RKey, To: wr.STag, Addr: wr.remote, Length: wr.operand1, Access: uint32(wr.operand2), By: by}
}

// Offset is how many bytes were handed to the carrier: the next piece begins there.
func (wr *SendWR) Offset() uint32 { return wr.sent }

// ImmediateNext reports whether all that is left to be sent is the immediate data.
func (wr *SendWR) ImmediateNext() bool { return wr.bytesOut }

// Got is how many bytes of a Read's response were placed.
func (wr *SendWR) Got() uint32 { return wr.got }

// Ending is what the end of the message tells the peer.
func (wr *SendWR) Ending() Ending {
	return Ending{HasImmediate: wr.Op.Immediate, Immediate: wr.Immediate, Invalidates: wr.Op.Invalidates, STag: wr.STag,
		Solicited: wr.Flags&abi.SendSolicited != 0}
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

	orderedMSN uint32   // of the next message that takes a receive
	readMSN    uint32   // of the next Read
	reads      int      // Reads begun whose answers are not acknowledged
	settling   []uint64 // of them, answered: until jobs.done is this
	maxReads   int      // of them at a time, agreed on with the peer
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
	s.orderedMSN, s.readMSN, s.reads, s.settling, s.maxReads, s.takes = 1, 1, 0, nil, int(maxReads), takes
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

// Slots is the number of slots, 0 of a queue pair without a send queue.
func (s *SendQueue) Slots() int { return s.ring.Slots() }

// Outstanding is how many work requests wait for completion.
func (s *SendQueue) Outstanding() int { return int(s.tail - s.head) }

// Empty reports that nothing is outstanding, and that all that was posted before the
// last look was fetched.
func (s *SendQueue) Empty() bool { return s.head == s.tail && !s.more }

// Holds reports whether an index is that of an outstanding work request.
func (s *SendQueue) Holds(i uint32) bool { return i-s.head < s.tail-s.head }

// Index is the index of the outstanding work request in a slot.
func (s *SendQueue) Index(slot uint32) uint32 { return s.head + (slot-s.head)&s.mask }

// oldestFailed reports whether the oldest work request was found wrong.
func (s *SendQueue) oldestFailed() bool {
	return s.head != s.tail && s.At(s.head).State == SendFailed
}

// release gives back what work request i holds.
func (s *SendQueue) release(i uint32) {
	wr := s.At(i)
	for j := range wr.list {
		wr.list[j].region.Release()
		wr.list[j] = element{}
	}
	s.dropStage(wr)
	wr.list, wr.src = wr.list[:0], nil
	s.passed(i, s.tail)
}

// drop forgets all work without completing it.
func (s *SendQueue) drop() {
	for i := s.head; i != s.tail; i++ {
		s.release(i)
	}
	s.head, s.next = s.tail, s.tail
	s.reads, s.settling = 0, nil
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
