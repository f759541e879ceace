package rdmap

import (
	"urdma/urdmad/core/mem"
	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
	"urdma/wire"
)

// This file says what Terminate codes (RFC 5040 section 4.8, RFC 5041 section 7)
// stand for: which check yields which, and what a client is told.

// Code is the cause of a Terminate.
type Code = wire.TermCode

// CodeNoPeer refuses what is for a queue pair that takes no messages.
const CodeNoPeer = wire.TermOperationStream

// refusals are the causes for the outcomes and the violations of a kind of message.
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
	writes = refusals{violations: [...]wire.TermCode{mem.NoRegion: wire.TermTaggedSTag, mem.OtherDomain: wire.TermTaggedStream,
		mem.Wrap: wire.TermTaggedWrap, mem.OutOfBounds: wire.TermTaggedBounds, mem.NoRight: wire.TermProtectionAccess,
		mem.Failing: wire.TermOperationUnspecified}}
	reads = refusals{violations: [...]wire.TermCode{mem.NoRegion: wire.TermProtectionSTag, mem.OtherDomain: wire.TermProtectionStream,
		mem.Wrap: wire.TermProtectionWrap, mem.OutOfBounds: wire.TermProtectionBounds, mem.NoRight: wire.TermProtectionAccess,
		mem.Misaligned: wire.TermOperationStream, mem.Failing: wire.TermOperationUnspecified}}
	responses = refusals{outcomes: [...]wire.TermCode{qp.Revoked: wire.TermTaggedSTag}} // the peer has nowhere to put it any more
	originals = refusals{outcomes: [...]wire.TermCode{qp.Revoked: wire.TermDDPCatastrophic}}
)

// SendCode is the cause that refuses a message that takes a receive, for a verdict
// about it; 0 for none.
func SendCode(v qp.Verdict) wire.TermCode { return sends.code(v) }

// WriteCode is likewise the cause that refuses a tagged segment: DDP found it.
func WriteCode(v qp.Verdict) wire.TermCode { return writes.code(v) }

// ReadCode is likewise the cause that refuses the source of a Read, or an atomic:
// RDMAP found it.
func ReadCode(v qp.Verdict) wire.TermCode { return reads.code(v) }

// StatusOf is the completion status (enum ibv_wc_status) that tells a cause best
// to the sender of what was refused. op may be nil.
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
	case wire.TermUntaggedTooLong, wire.TermUntaggedMSN, wire.TermUntaggedMO, wire.TermUntaggedQN, wire.TermProtectionInvalidate:
		return abi.StatusRemInvReqErr
	}
	return abi.StatusRemOpErr
}

// EventOf is the asynchronous event that tells a cause to the end that refused the message.
func EventOf(code wire.TermCode) uint32 {
	if code.IsUntagged() {
		return qp.EventRequest
	}
	return qp.EventAccess
}
