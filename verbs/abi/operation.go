package abi

// Operation has the properties of an enum ibv_wr_opcode: a row of URDMA_ABI_OPERATIONS.
type Operation struct {
	Name       string // the enumerator without IBV_WR_; "" for a number that is not an opcode
	Completion uint32 // enum ibv_wc_opcode
	RDMAP      uint8  // RDMAP opcode of its first message (RFC 5040 section 4.1, RFC 7306), or NoRDMAP
	// enum ibv_access_flags that the peer's region must grant; 0: the operation uses no region of the peer
	RemoteAccess uint32
	Supported    bool // if not, posting it returns EOPNOTSUPP
	ReadsLocal   bool // sends the data in the scatter/gather list
	WritesLocal  bool // writes the response to the scatter/gather list
	Inline       bool // its data may be sent inline
	Immediate    bool // carries immediate data
	Invalidates  bool // invalidates an STag of the peer or, locally, our own
	TakesReceive bool // completes a receive at the peer
	Atomic       bool // uses compare_add and swap
	Datagram     bool // allowed on queue pairs of type UD
}

// Unreliable reports whether queue pairs of type UC support the operation: it has no response and invalidates
// no STag.
func (op *Operation) Unreliable() bool {
	return !op.WritesLocal && (op.RDMAP == NoRDMAP || !op.Invalidates)
}

// Of reports whether queue pairs of a type (enum ibv_qp_type) support the operation.
func (op *Operation) Of(kind uint32) bool {
	switch kind {
	case QPTypeUD:
		return op.Datagram
	case QPTypeRawPacket: // a frame has no field for immediate data
		return op.Datagram && !op.Immediate
	case QPTypeUC:
		return op.Unreliable()
	case QPTypeXRCSend: // XRC messages have a queue's number in place of the STag to invalidate
		return op.RDMAP == NoRDMAP || !op.Invalidates
	case QPTypeXRCRecv: // XRCRecv has no send queue
		return false
	}
	return true
}

// NoRDMAP marks operations for which RDMAP has no message.
const NoRDMAP = 0xff

// RDMAP opcodes of requests.
const (
	rdmapWrite       = 0
	rdmapReadRequest = 1
	rdmapSend        = 3
	rdmapSendInv     = 4
	rdmapAtomic      = 10
)

// OperationOf returns the row of an opcode, or nil for a number that is not an opcode, which a client may
// write into a slot.
func OperationOf(opcode uint32) *Operation {
	if opcode >= uint32(len(operations)) || operations[opcode].Name == "" {
		return nil
	}
	return &operations[opcode]
}
