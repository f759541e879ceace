package qp

import (
	"encoding/binary"
	"net/netip"

	"urdma/urdmad/core/mem"
	"urdma/verbs/abi"
	"urdma/verbs/ring"
)

// SendState is the progress of a send work request.
type SendState uint8

const (
	SendQueued SendState = iota // not completely handed to the carrier
	SendSent                    // completely handed to the carrier
	SendFailed                  // invalid: completes with its error status when it is the oldest
)

// SendWR is urdmad's private copy of a send work request.
type SendWR struct {
	Op        *abi.Operation
	Flags     uint32 // enum ibv_send_flags
	RKey      mem.STag
	STag      mem.STag // STag to invalidate or to bind; for XRC_SEND: number of the shared receive queue
	Immediate uint32   // as the program stored it: network byte order
	Length    uint32
	State     SendState
	Started   bool   // its message number is assigned
	MSN       uint32 // among the messages that take a receive, or among Reads; from 1 in each connection

	sent     uint32 // bytes handed to the carrier
	bytesOut bool   // all bytes were; the immediate data comes next
	answered bool   // Read: all of the response has arrived
	got      uint32 // Read: bytes of the response placed
	mark     uint64 // delivered once Acknowledge has reached this mark

	// The slot's operands: see RemoteAddr, AtomicOp, Destination and binding.
	remote, operand1, operand2 uint64

	id         uint64
	index      uint32 // in the send queue
	status     uint32
	vendor     uint32
	list       []element  // scatter/gather list; its memory belongs to the chunk
	src        []byte     // inline data; else nil
	ahead      *ReadAhead // source on the fallback path; else nil
	asyncUntil uint64     // for a Read or a window: completes once jobs.done has reached this
}

// renew makes wr the copy of a slot, at an index of the send queue. The old content was released,
// so that list is empty and src and ahead are nil.
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

// ID returns its wr_id.
func (wr *SendWR) ID() uint64 { return wr.id }

// RemoteAddr returns the address in the peer's memory at which a Write, Read or atomic begins.
func (wr *SendWR) RemoteAddr() uint64 { return wr.remote }

// AtomicOp returns the operation that an atomic work request asks for.
func (wr *SendWR) AtomicOp() mem.AtomicOp {
	if wr.Op.Completion == abi.WCCompSwap {
		return mem.AtomicOp{Data: wr.operand2, Mask: ^uint64(0), Compare: wr.operand1, CompareMask: ^uint64(0)}
	}
	return mem.AtomicOp{Add: true, Data: wr.operand1}
}

// Destination returns the address, queue pair number and Q_Key to which a UD message goes. The
// address is invalid if the client's was.
func (wr *SendWR) Destination() (addr netip.Addr, qpn, qkey uint32) {
	var b [16]byte
	binary.NativeEndian.PutUint64(b[:], wr.operand1)
	binary.NativeEndian.PutUint64(b[8:], wr.operand2)
	return netip.AddrFrom16(b).Unmap(), uint32(wr.remote), uint32(wr.remote >> 32)
}

// binding returns the binding that a bind work request asks for.
func (wr *SendWR) binding(by mem.User) mem.Binding {
	return mem.Binding{STag: wr.RKey, To: wr.STag, Addr: wr.remote, Length: wr.operand1, Access: uint32(wr.operand2),
		By: by}
}

// Offset returns how many bytes were handed to the carrier: the next segment starts there.
func (wr *SendWR) Offset() uint32 { return wr.sent }

// ImmediateNext reports whether only the immediate data is left to send.
func (wr *SendWR) ImmediateNext() bool { return wr.bytesOut }

// Got returns how many bytes of a Read's answer were placed.
func (wr *SendWR) Got() uint32 { return wr.got }

// Ending returns the information for the last segment of the message.
func (wr *SendWR) Ending() Ending {
	return Ending{HasImmediate: wr.Op.Immediate, Immediate: wr.Immediate, Invalidates: wr.Op.Invalidates, STag: wr.STag,
		Solicited: wr.Flags&abi.SendSolicited != 0}
}

// IsRead reports whether the work request is an RDMA Read, or an atomic operation, which is
// handled like a Read: the answer is written to its list.
func (wr *SendWR) IsRead() bool { return wr.Op.WritesLocal }

// element is a checked scatter/gather element: n bytes at va of region. bytes is nil on the
// fallback path.
type element struct {
	region *mem.Region
	va     uint64
	n      uint32
	bytes  []byte
}

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
