package abi

// Operation is what one enum ibv_wr_opcode does: a row of URDMA_ABI_OPERATIONS.
type Operation struct {
	Name         string // of the enumerator, without IBV_WR_; "" for a number that is no opcode
	Completion   uint32 // enum ibv_wc_opcode
	RDMAP        uint8  // RDMAP opcode of its first message (RFC 5040 section 4.1, RFC 7306), or NoRDMAP
	RemoteAccess uint32 // enum ibv_access_flags that the peer's region has to grant; 0: names none
	Supported    bool   // else posting it answers EOPNOTSUPP
	ReadsLocal   bool   // what the scatter/gather list names is sent
	WritesLocal  bool   // what comes back is written there
	Inline       bool   // its data may be inline
	Immediate    bool   // carries immediate data
	Invalidates  bool   // names an STag to invalidate, the peer's or, locally, ours
	TakesReceive bool   // completes a receive at the peer
	Atomic       bool   // uses compare_add and swap
	Datagram     bool   // queue pairs of type UD have it, too
}

// Unreliable reports an operation that queue pairs of type UC have: it is answered
// by nothing, and takes no STag away.
func (op *Operation) Unreliable() bool {
	return !op.WritesLocal && (op.RDMAP == NoRDMAP || !op.Invalidates)
}

// Of reports an operation that queue pairs of a type, enum ibv_qp_type, have.
func (op *Operation) Of(kind uint32) bool {
	switch kind {
	case QPTypeUD:
		return op.Datagram
	case QPTypeUC:
		return op.Unreliable()
	case QPTypeXRCSend: // the number of a queue stands where the STag to invalidate would
		return op.RDMAP == NoRDMAP || !op.Invalidates
	case QPTypeXRCRecv: // it has no send queue
		return false
	}
	return true
}

// NoRDMAP says that RDMAP has no message for an operation.
const NoRDMAP = 0xff

// RDMAP opcodes of requests.
const (
	rdmapWrite       = 0
	rdmapReadRequest = 1
	rdmapSend        = 3
	rdmapSendInv     = 4
	rdmapAtomic      = 10
)

// OperationOf returns the row of an opcode; nil for a number that is none, such
// as a client may write into a slot.
func OperationOf(opcode uint32) *Operation {
	if opcode >= uint32(len(operations)) || operations[opcode].Name == "" {
		return nil
	}
	return &operations[opcode]
}
