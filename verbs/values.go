package verbs

import (
	"encoding/binary"

	"urdma/verbs/abi"
)

// QPType is the type of a queue pair, enum ibv_qp_type.
type QPType uint32

// Types of queue pairs (ibv_create_qp(3)).
const (
	// RC is reliable and connected; the default in QPOptions.
	RC QPType = abi.QPTypeRC
	// UC is connected by number and unreliable: Sends and Writes that a network damages do not arrive, and no
	// error is reported. It has no Reads and no atomics.
	UC QPType = abi.QPTypeUC
	// UD has no peer: each Send names its destination, and is one datagram that may be lost. See Destination.
	UD QPType = abi.QPTypeUD
	// XRCSend and XRCRecv are the ends of an extended reliable connection: see XRCDomain.
	XRCSend QPType = abi.QPTypeXRCSend
	XRCRecv QPType = abi.QPTypeXRCRecv
)

func (t QPType) String() string { return abi.QPTypeText(uint32(t)) }

// Opcode is the operation of a send work request, enum ibv_wr_opcode.
type Opcode uint32

// Operations that urdma supports (ibv_post_send(3)).
const (
	OpWrite        Opcode = abi.WRRDMAWrite
	OpWriteWithImm Opcode = abi.WRRDMAWriteWithImm
	OpSend         Opcode = abi.WRSend
	OpSendWithImm  Opcode = abi.WRSendWithImm
	OpRead         Opcode = abi.WRRDMARead
	OpSendWithInv  Opcode = abi.WRSendWithInv
	OpFetchAdd     Opcode = abi.WRAtomicFetchAndAdd
	OpCmpSwap      Opcode = abi.WRAtomicCmpAndSwp
	OpLocalInv     Opcode = abi.WRLocalInv
	OpBindWindow   Opcode = abi.WRBindMW
)

// SendFlags are enum ibv_send_flags; for inline data use SendWR.Inline.
type SendFlags uint32

// Flags of a send work request (ibv_post_send(3)).
const (
	Fence     SendFlags = abi.SendFence     // starts after all earlier Reads are complete
	Signaled  SendFlags = abi.SendSignaled  // has a completion also on success
	Solicited SendFlags = abi.SendSolicited // causes an event at a peer that armed for solicited completions
)

// Access is the set of rights on a memory region, enum ibv_access_flags.
type Access uint32

// Rights of a memory region (ibv_reg_mr(3)). Local reading is always allowed;
// RemoteWrite needs LocalWrite.
const (
	LocalWrite  Access = abi.AccessLocalWrite
	RemoteWrite Access = abi.AccessRemoteWrite
	RemoteRead  Access = abi.AccessRemoteRead

	RemoteAtomic Access = abi.AccessRemoteAtomic // needs LocalWrite
	BindWindows  Access = abi.AccessMWBind       // windows may be bound to it
	// ZeroBased makes addresses in the region begin at 0.
	ZeroBased Access = abi.AccessZeroBased
	// OnDemand makes RegisterMemory look at no page: each access finds what the program has mapped at that
	// moment, and fails where it could not access the memory itself (IBV_ACCESS_ON_DEMAND). Peers have no atomics.
	OnDemand Access = abi.AccessOnDemand
)

// CompletionOp is the operation that completed, enum ibv_wc_opcode.
type CompletionOp uint32

// Completed operations (ibv_poll_cq(3)).
const (
	DidSend  CompletionOp = abi.WCSend
	DidWrite CompletionOp = abi.WCRDMAWrite
	DidRead  CompletionOp = abi.WCRDMARead
	DidRecv  CompletionOp = abi.WCRecv

	DidFetchAdd CompletionOp = abi.WCFetchAdd
	DidCmpSwap  CompletionOp = abi.WCCompSwap

	DidLocalInv   CompletionOp = abi.WCLocalInv
	DidBindWindow CompletionOp = abi.WCBindMW

	// A receive consumed by a Write with immediate; its memory was not written.
	DidRecvWriteWithImm CompletionOp = abi.WCRecvRDMAWithImm
)

func (o CompletionOp) String() string { return abi.CompletionText(uint32(o)) }

// Status is the result of a work request, enum ibv_wc_status.
type Status uint32

// Statuses (ibv_poll_cq(3)).
const (
	StatusSuccess        Status = abi.StatusSuccess
	StatusLocLenErr      Status = abi.StatusLocLenErr
	StatusLocQPOpErr     Status = abi.StatusLocQPOpErr
	StatusLocProtErr     Status = abi.StatusLocProtErr
	StatusWRFlushErr     Status = abi.StatusWRFlushErr
	StatusMWBindErr      Status = abi.StatusMWBindErr
	StatusBadRespErr     Status = abi.StatusBadRespErr
	StatusLocAccessErr   Status = abi.StatusLocAccessErr
	StatusRemInvReqErr   Status = abi.StatusRemInvReqErr
	StatusRemAccessErr   Status = abi.StatusRemAccessErr
	StatusRemOpErr       Status = abi.StatusRemOpErr
	StatusRetryExcErr    Status = abi.StatusRetryExcErr
	StatusRNRRetryExcErr Status = abi.StatusRNRRetryExcErr
	StatusRemAbortErr    Status = abi.StatusRemAbortErr
	StatusFatalErr       Status = abi.StatusFatalErr
	StatusGeneralErr     Status = abi.StatusGeneralErr
)

func (s Status) String() string { return abi.StatusText(uint32(s)) }

// Completion is the completion of a work request, struct ibv_wc. If it failed only ID, Status, VendorErr, Op
// and QPN are valid.
type Completion struct {
	ID     uint64 // of the work request
	Status Status
	Op     CompletionOp
	// why it failed, as explained by urdma explain; below 0x400 and from 0x1000 on the cause in a Terminate
	// message: layer<<12 | type<<8 | code, RFC 5040 section 4.8
	VendorErr uint32
	ByteLen   uint32 // bytes received or read; for a Write with immediate: written; for a datagram including GRHLen
	// InvalidatedSTag is the rkey that a Send with Invalidate invalidated; valid if Invalidated is true.
	InvalidatedSTag uint32
	Invalidated     bool
	// Imm is the peer's immediate data; valid if HasImm is true.
	Imm    uint32
	HasImm bool

	QPN       uint32
	SrcQPN    uint32 // the sender's queue pair number, if HasGRH is true
	HasGRH    bool   // a datagram's receive: it begins with GRHLen bytes that ParseGRH reads
	Timestamp uint64 // ns, CLOCK_MONOTONIC, of the completion in urdmad
}

// Err returns nil for a success, otherwise a *CompletionError.
func (c *Completion) Err() error {
	if c.Status == StatusSuccess {
		return nil
	}
	return &CompletionError{*c}
}

func (c *Completion) from(e *abi.CQE) {
	*c = Completion{ID: e.WRID, Status: Status(e.Status), Op: CompletionOp(e.Opcode), VendorErr: e.VendorErr,
		ByteLen: e.ByteLen, InvalidatedSTag: e.ImmOrSTag, Invalidated: e.WCFlags&abi.WCWithInv != 0,
		Imm: networkOrder(e.ImmOrSTag), HasImm: e.WCFlags&abi.WCWithImm != 0, QPN: e.QPNum, Timestamp: e.Timestamp,
		SrcQPN: e.SrcQP, HasGRH: e.WCFlags&abi.WCGRH != 0}
}

// networkOrder converts a number as htonl in a C program does, and back.
func networkOrder(v uint32) uint32 {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], v)
	return binary.NativeEndian.Uint32(b[:])
}
