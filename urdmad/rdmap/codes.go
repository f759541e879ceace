package rdmap

import (
	"urdma/urdmad/mem"
	"urdma/urdmad/qp"
	"urdma/verbs/abi"
	"urdma/wire"
)

// This file says what Terminate codes (RFC 5040 section 4.8, RFC 5041 section 7)
// stand for: which check yields which, and what a client is told.

// Code is the cause of a Terminate.
type Code = wire.TermCode

// Causes that other carriers with RDMAP's semantics use, too.
const (
	CodeNoReceive    = wire.TermUntaggedNoBuffer
	CodeTooLong      = wire.TermUntaggedTooLong
	CodeCatastrophic = wire.TermDDPCatastrophic
	CodeNoPeer       = wire.TermOperationStream
)

var writeCodes = [...]wire.TermCode{mem.NoRegion: wire.TermTaggedSTag, mem.OtherDomain: wire.TermTaggedStream,
	mem.Wrap: wire.TermTaggedWrap, mem.OutOfBounds: wire.TermTaggedBounds, mem.NoRight: wire.TermProtectionAccess}

var readCodes = [...]wire.TermCode{mem.NoRegion: wire.TermProtectionSTag, mem.OtherDomain: wire.TermProtectionStream,
	mem.Wrap: wire.TermProtectionWrap, mem.OutOfBounds: wire.TermProtectionBounds, mem.NoRight: wire.TermProtectionAccess, mem.Misaligned: wire.TermOperationStream}

var invalidateCodes = [...]wire.TermCode{mem.NoRegion: wire.TermProtectionSTag, mem.OtherDomain: wire.TermProtectionStream,
	mem.NoRight: wire.TermProtectionInvalidate}

// WriteCode is the cause that refuses a tagged segment: DDP found it.
func WriteCode(v mem.Violation) wire.TermCode { return writeCodes[v] }

// ReadCode is the cause that refuses the source of a Read: RDMAP found it.
func ReadCode(v mem.Violation) wire.TermCode { return readCodes[v] }

// StatusOf is the completion status (enum ibv_wc_status) that tells a cause best
// to who sent what was refused. op may be nil.
func StatusOf(op *abi.Operation, code wire.TermCode) uint32 {
	if op != nil && op.Atomic && code == readCodes[mem.Misaligned] {
		return abi.StatusRemInvReqErr
	}
	switch code {
	case wire.TermProtectionSTag, wire.TermProtectionBounds, wire.TermProtectionAccess, wire.TermProtectionStream,
		wire.TermProtectionWrap, wire.TermTaggedSTag, wire.TermTaggedBounds, wire.TermTaggedStream, wire.TermTaggedWrap:
		return abi.StatusRemAccessErr
	case wire.TermUntaggedNoBuffer:
		return abi.StatusRNRRetryExcErr
	case wire.TermUntaggedTooLong, wire.TermUntaggedMSN, wire.TermUntaggedMO, wire.TermUntaggedQN, wire.TermProtectionInvalidate:
		return abi.StatusRemInvReqErr
	}
	return abi.StatusRemOpErr
}

// EventOf is the asynchronous event that tells a cause to who refused it.
func EventOf(code wire.TermCode) uint32 {
	if code.IsUntagged() {
		return qp.EventRequest
	}
	return qp.EventAccess
}
