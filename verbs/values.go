package verbs

import (
	"encoding/binary"

	"urdma/verbs/abi"
)

// QPType is the type of a queue pair, enum ibv_qp_type.
type QPType uint32

// Types of queue pairs (ibv_create_qp(3)).
const (
	// RC is reliable and connected: what QPOptions of no type makes.
	RC QPType = abi.QPTypeRC
	// UC is connected by number, and unreliable: Sends and Writes, of which those that
	// a network damages don't arrive, and nothing says so. No Reads, no atomics.
	UC QPType = abi.QPTypeUC
	// UD has no peer: each Send says where it goes, and is one datagram that may be
	// lost. See Destination.
	UD QPType = abi.QPTypeUD
	// XRCSend and XRCRecv are the ends of an extended reliable connection: see XRCDomain.
	XRCSend QPType = abi.QPTypeXRCSend
	XRCRecv QPType = abi.QPTypeXRCRecv
)

func (t QPType) String() string { return abi.QPTypeText(uint32(t)) }

// Opcode is what a send work request does, enum ibv_wr_opcode.
type Opcode uint32

// Operations that urdma has (ibv_post_send(3)).
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

// SendFlags are enum ibv_send_flags; inline data is asked for by SendWR.Inline.
type SendFlags uint32

// Flags of a send work request (ibv_post_send(3)).
const (
	Fence     SendFlags = abi.SendFence     // not before the Reads posted earlier are done
	Signaled  SendFlags = abi.SendSignaled  // a success makes a completion too
	Solicited SendFlags = abi.SendSolicited // wakes a peer that armed for solicited completions
)

// Access is what a memory region allows, enum ibv_access_flags.
type Access uint32

// Rights of a memory region (ibv_reg_mr(3)). Local reading is always allowed;
// RemoteWrite needs LocalWrite.
const (
	LocalWrite  Access = abi.AccessLocalWrite
	RemoteWrite Access = abi.AccessRemoteWrite
	RemoteRead  Access = abi.AccessRemoteRead

	RemoteAtomic Access = abi.AccessRemoteAtomic // needs LocalWrite
	BindWindows  Access = abi.AccessMWBind       // windows may be bound to it
	// ZeroBased has addresses within the region count from 0.
	ZeroBased Access = abi.AccessZeroBased
)

// CompletionOp is what completed, enum ibv_wc_opcode.
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

	// A receive that a Write with immediate took; its memory was not written.
	DidRecvWriteWithImm CompletionOp = abi.WCRecvRDMAWithImm
)

func (o CompletionOp) String() string { return abi.CompletionText(uint32(o)) }

// Status is how a work request ended, enum ibv_wc_status.
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

// Completion tells the end of a work request, struct ibv_wc. Of one that failed
// only ID, Status, VendorErr, Op and QPN count.
type Completion struct {
	ID        uint64 // of the work request
	Status    Status
	Op        CompletionOp
	VendorErr uint32 // why it failed, as urdma explain says it; below 0x400 and from 0x1000 on the cause of a Terminate: layer<<12 | type<<8 | code, RFC 5040 section 4.8
	ByteLen   uint32 // bytes received or read; of a Write with immediate: written; of a datagram with its GRHLen
	// InvalidatedSTag is the rkey that a Send with Invalidate took away;
	// counts where Invalidated is true.
	InvalidatedSTag uint32
	Invalidated     bool
	// Imm is the peer's immediate data; counts where HasImm is true.
	Imm    uint32
	HasImm bool

	QPN       uint32
	SrcQPN    uint32 // the sender's queue pair number, where HasGRH is true
	HasGRH    bool   // a datagram's receive: it begins with GRHLen bytes that ParseGRH reads
	Timestamp uint64 // ns, CLOCK_MONOTONIC, when urdmad completed it
}

// Err is nil for a success, otherwise a *CompletionError.
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

// networkOrder turns a number into what a C program would store with htonl, and
// back.
func networkOrder(v uint32) uint32 {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], v)
	return binary.NativeEndian.Uint32(b[:])
}
