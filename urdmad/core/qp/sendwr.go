package qp

import (
	"encoding/binary"
	"math"
	"net/netip"

	"urdma/urdmad/core/mem"
	"urdma/verbs/abi"
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

// isLocal reports whether the work request is local: no carrier sends it.
func (wr *SendWR) isLocal() bool { return wr.Op.Supported && wr.Op.RDMAP == abi.NoRDMAP }

// Available reports whether the byte at off of the work request's source can be read now. If not,
// it requests the byte.
func (wr *SendWR) Available(off uint32) bool {
	return wr.ahead == nil || wr.ahead.Need(off)
}

// Run returns how many bytes starting at off, at most limit, one segment carries.
func (wr *SendWR) Run(off, limit uint32) uint32 {
	if wr.ahead != nil && !wr.IsRead() {
		return wr.ahead.Run(off, limit)
	}
	return min(limit, wr.Length-off)
}

// Consumed frees the chunks read ahead for bytes that were sent, for a carrier that never sends
// them again.
func (wr *SendWR) Consumed() {
	if wr.ahead != nil {
		wr.ahead.Acked(math.MaxUint64)
	}
}

// rows has the operation of each opcode. The last row is for all unknown opcodes.
var rows = func() (all [17]*abi.Operation) {
	for i := range all {
		if all[i] = abi.OperationOf(uint32(i)); all[i] == nil {
			all[i] = &abi.Operation{RDMAP: abi.NoRDMAP}
		}
	}
	return all
}()

// operationOf returns the row of an opcode, which comes from the client and may be invalid.
func operationOf(opcode uint32) *abi.Operation { return rows[min(opcode, uint32(len(rows)-1))] }
