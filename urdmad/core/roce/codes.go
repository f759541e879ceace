package roce

import (
	"urdma/reason"
	"urdma/urdmad/core/mem"
	"urdma/urdmad/core/qp"
	"urdma/urdmad/core/rc"
	"urdma/verbs/abi"
	"urdma/wire/roce"
)

// This file maps failures to NAK codes, and NAK codes to what a client is told (InfiniBand vol. 1).

// nakOf returns the NAK code that refuses a request, from the message core's verdict.
func nakOf(v qp.Verdict) roce.Syndrome {
	switch {
	case v.Is == qp.Denied && v.Why == mem.Misaligned, v.Is == qp.TooLong, v.Is == qp.NoRoom, v.Is == qp.NoQueue:
		return roce.NAKInvalid
	case v.Is == qp.Denied && v.Why != mem.Failing:
		return roce.NAKAccess
	}
	return roce.NAKOperational
}

// eventOf returns the asynchronous event for the refusing side's client, and its reason.
func eventOf(s roce.Syndrome) (event uint32, why reason.Number) {
	switch s {
	case roce.NAKInvalid:
		return qp.EventRequest, reason.NAKInvalid
	case roce.NAKAccess:
		return qp.EventAccess, reason.NAKAccess
	}
	return qp.EventAccess, reason.NAKFailed
}

// failures has the completion status (enum ibv_wc_status) of the failed work request, and its reason.
var failures = [...]struct {
	status uint32
	why    reason.Number
}{
	rc.NoAnswer:         {abi.StatusRetryExcErr, reason.Silent},
	rc.NotReady:         {abi.StatusRNRRetryExcErr, reason.NotReady},
	rc.InvalidRequest:   {abi.StatusRemInvReqErr, reason.NAKInvalid},
	rc.AccessError:      {abi.StatusRemAccessErr, reason.NAKAccess},
	rc.OperationalError: {abi.StatusRemOpErr, reason.NAKFailed},
}
