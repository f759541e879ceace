package qp

import (
	"urdma/urdmad/core/clock"
	"urdma/verbs/abi"
)

// This file says how long a connection by number tries: the attributes timeout and
// retry_cnt of ibv_modify_qp(3).

// NoLimit stands for tries without end.
const NoLimit = clock.Never / 4

// leastPatience is what short time-outs are raised to: peers are processes, and
// the scheduler may keep one from running for longer than a wire takes.
const leastPatience = 500 * clock.Millisecond

// Patience is how long an unanswered send is tried: retry_cnt repetitions, each
// after four times the time-out, which InfiniBand allows.
// A time-out of 0 has no end.
func Patience(a *abi.QPAttr) clock.Time {
	if a.Timeout == 0 {
		return NoLimit
	}
	each := 4 * clock.Time(4096) << a.Timeout
	return max(leastPatience, each*clock.Time(a.RetryCnt+1))
}
