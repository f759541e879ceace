package roce

import (
	"urdma/reason"
	"urdma/urdmad/core/mem"
	"urdma/urdmad/core/qp"
	"urdma/urdmad/core/rc"
	"urdma/verbs/abi"
	"urdma/wire/roce"
)

// This file says what NAK codes stand for: which check yields which, and what a client
// is told (InfiniBand vol. 1).

// nakOf is what refuses a request, for a verdict of the message core about it.
func nakOf(v qp.Verdict) roce.Syndrome {
	switch {
	case v.Is == qp.Denied && v.Why == mem.Misaligned, v.Is == qp.TooLong, v.Is == qp.NoRoom, v.Is == qp.NoQueue:
		return roce.NAKInvalid
	case v.Is == qp.Denied && v.Why != mem.Failing:
		return roce.NAKAccess
	}
	return roce.NAKOperational
}

// eventOf is the asynchronous event that tells the cause to the end that refused, and its reason.
func eventOf(s roce.Syndrome) (event uint32, why reason.Number) {
	switch s {
	case roce.NAKInvalid:
		return qp.EventRequest, reason.NAKInvalid
	case roce.NAKAccess:
		return qp.EventAccess, reason.NAKAccess
	}
	return qp.EventAccess, reason.NAKFailed
}

// failures are the completion status (enum ibv_wc_status) of the work request to blame,
// and its reason.
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
