package rdmap

import (
	"urdma/urdmad/core/mem"
	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
	"urdma/wire"
)

// This file maps failures to Terminate codes (RFC 5040 section 4.8, RFC 5041 section 7), and Terminate
// codes to what a client is told.

// Code is the cause of a Terminate.
type Code = wire.TermCode

// CodeNoPeer refuses a message to a queue pair that accepts none.
const CodeNoPeer = wire.TermOperationStream

// refusals maps the outcomes and violations of one message type to causes.
type refusals struct {
	outcomes   [qp.Denied]wire.TermCode
	violations [mem.Failing + 1]wire.TermCode
}

func (r *refusals) code(v qp.Verdict) wire.TermCode {
	if v.Is == qp.Denied {
		return r.violations[v.Why]
	}
	return r.outcomes[v.Is]
}

var (
	sends = refusals{
		outcomes: [...]wire.TermCode{qp.NoReceive: wire.TermUntaggedNoBuffer, qp.BadReceive: wire.TermDDPCatastrophic,
			qp.NoQueue: wire.TermUntaggedQN, qp.TooLong: wire.TermUntaggedTooLong, qp.Revoked: wire.TermDDPCatastrophic},
		violations: [...]wire.TermCode{mem.NoRegion: wire.TermProtectionSTag, mem.OtherDomain: wire.TermProtectionStream,
			mem.NoRight: wire.TermProtectionInvalidate, mem.Failing: 0},
	}
	writes = refusals{violations: [...]wire.TermCode{mem.NoRegion: wire.TermTaggedSTag,
		mem.OtherDomain: wire.TermTaggedStream,
		mem.Wrap:        wire.TermTaggedWrap, mem.OutOfBounds: wire.TermTaggedBounds, mem.NoRight: wire.TermProtectionAccess,
		mem.Unmapped: wire.TermTaggedBounds, mem.Failing: wire.TermOperationUnspecified}}
	reads = refusals{violations: [...]wire.TermCode{mem.NoRegion: wire.TermProtectionSTag,
		mem.OtherDomain: wire.TermProtectionStream,
		mem.Wrap:        wire.TermProtectionWrap, mem.OutOfBounds: wire.TermProtectionBounds,
		mem.NoRight: wire.TermProtectionAccess, mem.Unmapped: wire.TermProtectionBounds,
		mem.Misaligned: wire.TermOperationStream, mem.Failing: wire.TermOperationUnspecified}}
	// Revoked: the peer has nowhere to put the answer any more.
	responses = refusals{outcomes: [...]wire.TermCode{qp.Revoked: wire.TermTaggedSTag}}
	originals = refusals{outcomes: [...]wire.TermCode{qp.Revoked: wire.TermDDPCatastrophic}}
)

// SendCode returns the cause for refusing a message that takes a receive, for a verdict; 0 for none.
func SendCode(v qp.Verdict) wire.TermCode { return sends.code(v) }

// WriteCode returns the cause for refusing a tagged segment; the error is DDP's.
func WriteCode(v qp.Verdict) wire.TermCode { return writes.code(v) }

// ReadCode returns the cause for refusing the source of a Read or an atomic; the error is RDMAP's.
func ReadCode(v qp.Verdict) wire.TermCode { return reads.code(v) }

// StatusOf returns the completion status (enum ibv_wc_status) that best describes a cause to the sender of
// the refused message. op may be nil.
func StatusOf(op *abi.Operation, code wire.TermCode) uint32 {
	if op != nil && op.Atomic && code == reads.violations[mem.Misaligned] {
		return abi.StatusRemInvReqErr
	}
	switch code {
	case wire.TermProtectionSTag, wire.TermProtectionBounds, wire.TermProtectionAccess, wire.TermProtectionStream,
		wire.TermProtectionWrap, wire.TermTaggedSTag, wire.TermTaggedBounds, wire.TermTaggedStream, wire.TermTaggedWrap:
		return abi.StatusRemAccessErr
	case wire.TermUntaggedNoBuffer:
		return abi.StatusRNRRetryExcErr
	case wire.TermUntaggedTooLong, wire.TermUntaggedMSN, wire.TermUntaggedMO, wire.TermUntaggedQN,
		wire.TermProtectionInvalidate:
		return abi.StatusRemInvReqErr
	}
	return abi.StatusRemOpErr
}

// EventOf returns the asynchronous event for a cause, for the client of the side that refused the message.
func EventOf(code wire.TermCode) uint32 {
	if code.IsUntagged() {
		return qp.EventRequest
	}
	return qp.EventAccess
}
