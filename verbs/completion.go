package verbs

import "urdma/verbs/abi"

// Op is what a work request does, or did.
type Op uint32

// Operations of SendRequest.Op and Completion.Op.
const (
	OpWrite             Op = abi.WRRDMAWrite
	OpSend              Op = abi.WRSend
	OpRead              Op = abi.WRRDMARead
	OpSendAndInvalidate Op = abi.WRSendWithInv
	OpRecv              Op = 1 << 16 // completions only
)

// Completion says how a work request ended.
type Completion struct {
	ID     uint64
	Status Status
	Op     Op     // a Send with invalidation completes as OpSend
	Bytes  int    // OpRecv: of the message
	QPNum  uint32 // QP.Num of the queue pair
	// Invalidated is the key that the peer's OpSendAndInvalidate named, if it
	// did.
	Invalidated    uint32
	HasInvalidated bool
	Cause          uint32 // see CompletionError
	Time           int64  // ns, CLOCK_MONOTONIC, when urdmad completed it
}

// Err is nil for success and a *CompletionError otherwise.
func (c *Completion) Err() error {
	if c.Status == Success {
		return nil
	}
	return &CompletionError{ID: c.ID, Status: c.Status, Cause: c.Cause}
}

func fromRing(c *Completion, e *abi.CQE) {
	*c = Completion{ID: e.WRID, Status: Status(e.Status), QPNum: e.QPNum, Cause: e.VendorErr, Time: int64(e.Timestamp),
		Bytes: int(e.ByteLen)}
	switch e.Opcode {
	case abi.WCSend:
		c.Op = OpSend
	case abi.WCRDMAWrite:
		c.Op = OpWrite
	case abi.WCRDMARead:
		c.Op = OpRead
	default:
		c.Op = OpRecv
	}
	if e.WCFlags&abi.WCWithInv != 0 {
		c.Invalidated, c.HasInvalidated = e.ImmOrSTag, true
	}
}
