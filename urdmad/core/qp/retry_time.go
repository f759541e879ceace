package qp

import (
	"urdma/urdmad/core/clock"
	"urdma/verbs/abi"
)

// This file computes how long a connection set up by ibv_modify_qp(3) retries, from the
// attributes timeout and retry_cnt.

// NoLimit stands for unlimited retries.
const NoLimit = clock.Never / 4

// minRetryTime is the least retry time. Peers are processes, and the scheduler may keep one from
// running for longer than a wire delay.
const minRetryTime = 500 * clock.Millisecond

// RetryTime returns how long an unacknowledged send is retried: retry_cnt times, each after four
// times the timeout, which InfiniBand allows. A timeout of 0 means no limit.
func RetryTime(a *abi.QPAttr) clock.Time {
	if a.Timeout == 0 {
		return NoLimit
	}
	each := 4 * clock.Time(4096) << a.Timeout
	return max(minRetryTime, each*clock.Time(a.RetryCnt+1))
}
