package qp

import (
	"urdma/urdmad/clock"
	"urdma/verbs/abi"
)

// This file says how long a connection by number tries: the attributes timeout,
// retry_cnt, rnr_retry and min_rnr_timer of ibv_modify_qp(3).

// NoLimit stands for tries without end.
const NoLimit = clock.Never / 4

// leastPatience is what short time-outs are raised to: peers are processes, and
// the scheduler may keep one from running for longer than a wire takes.
const leastPatience = 500 * clock.Millisecond

// Patience is how long an unanswered send is tried: retry_cnt repetitions, each
// after four times the time-out, which InfiniBand allows (vol. 1, 9.7.6.1.3).
// A time-out of 0 has no end.
func Patience(a *abi.QPAttr) clock.Time {
	if a.Timeout == 0 {
		return NoLimit
	}
	each := 4 * clock.Time(4096) << a.Timeout
	return max(leastPatience, each*clock.Time(a.RetryCnt+1))
}

// rnrTimers are the values of min_rnr_timer in units of 10 microseconds
// (InfiniBand vol. 1, table 45).
var rnrTimers = [32]clock.Time{65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536,
	2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152}

// receiverWait is how long a message of a connection of rdma_cm waits for a
// receive where neither side has said it.
const receiverWait = 100 * clock.Millisecond

// ReceiverPatience is how long a message to q, whose program has told rdma_cm an
// rnr_retry_count, waits for a receive: that many times q's min_rnr_timer, once
// the program has set it (ibv_modify_qp(3)).
func ReceiverPatience(q *QP, retries uint8) clock.Time {
	switch {
	case retries >= RNRForever:
		return NoLimit
	case q == nil || q.Attr.MinRNRTimer == 0:
		return receiverWait
	}
	return RNRPatience(&abi.QPAttr{RNRRetry: uint32(retries)}, uint8(q.Attr.MinRNRTimer))
}

// RNRPatience is how long a send to a peer with a min_rnr_timer waits for a
// receive. An rnr_retry of 7 has no end.
func RNRPatience(a *abi.QPAttr, minRNRTimer uint8) clock.Time {
	if a.RNRRetry >= RNRForever {
		return NoLimit
	}
	return clock.Time(a.RNRRetry) * rnrTimers[minRNRTimer&31] * 10 * clock.Microsecond
}
