package qp

import (
	"urdma/reason"
	"urdma/urdmad/core/clock"
	"urdma/verbs/abi"
)

// This file is the rule for a message that finds no receive posted. InfiniBand answers
// it with an RNR NAK and its sender tries again, so programs written for it rely on
// that; here the message waits for the receive.
//
// How long is counted for each message anew, and the work request that fails is the one
// whose message waits:
//
//   - By number it is rnr_retry of the sender times min_rnr_timer of the receiver
//     (ibv_modify_qp(3)), and only the sender fails.
//   - Through rdma_cm it is rnr_retry_count of the receiver (rdma_connect(3)) times its
//     min_rnr_timer, or a tenth of a second if the program has set none, and the
//     connection ends as RFC 5041 section 7 (no buffer) has it.
//   - 7 retries have no end.

// NotReady times the wait of one message for a receive.
type NotReady struct {
	waiting bool
	message uint64 // in the carrier's numbering
	since   clock.Time
	pause   clock.Time // until the receive queue is looked at again
}

const (
	rnrFirst = 20 * clock.Microsecond // first pause; it doubles
	rnrMax   = clock.Millisecond      // up to here
)

// Waiting reports whether a message waits.
func (w *NotReady) Waiting() bool { return w.waiting }

// Message is the one that waits.
func (w *NotReady) Message() uint64 { return w.message }

// Allows reports whether a message that has found no receive may wait, or wait longer.
func (w *NotReady) Allows(message uint64, limit, now clock.Time) bool {
	return !w.is(message) || now-w.since < limit
}

func (w *NotReady) is(message uint64) bool { return w.waiting && w.message == message }

// Wait has a message wait from now on, unless it does already: then it returns false.
func (w *NotReady) Wait(message uint64, now clock.Time) bool {
	if w.is(message) {
		return false
	}
	*w = NotReady{waiting: true, message: message, since: now, pause: rnrFirst}
	return true
}

// Restart counts the time from now on: so far the message waited for something else.
func (w *NotReady) Restart(now clock.Time) { w.since = now }

// Since is when the wait began.
func (w *NotReady) Since() clock.Time { return w.since }

// NextLook is when to look for a receive again: soon at first, then less often.
func (w *NotReady) NextLook(now clock.Time) clock.Time {
	at := now + w.pause
	w.pause = min(2*w.pause, rnrMax)
	return at
}

// End: the message has its receive.
func (w *NotReady) End() { w.waiting = false }

// Unready reports whether a message came before any receive was posted for it.
func (q *QP) Unready() bool { return q.unready }

// receiverWait is how long a message of a connection of rdma_cm waits if the receiver
// has no min_rnr_timer.
const receiverWait = 100 * clock.Millisecond

// RNRForever is the number of retries that stands for no limit.
const RNRForever = 7

// rnrTimers are the values of min_rnr_timer, InfiniBand's, in units of 10 microseconds.
var rnrTimers = [32]clock.Time{65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536,
	2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152}

func rnrPatience(retries uint32, minRNRTimer uint8) clock.Time {
	if retries >= RNRForever {
		return NoLimit
	}
	return clock.Time(retries) * rnrTimers[minRNRTimer&31] * 10 * clock.Microsecond
}

// SendPatience is how long the sending side has a message wait for the peer's receive.
func (c *Connection) SendPatience() clock.Time {
	if !c.ByNumber || c.QP == nil {
		return NoLimit // the receiver ends the wait
	}
	return rnrPatience(c.QP.Attr.RNRRetry, c.PeerRNR)
}

// ReceivePatience is how long the receiving side has a message wait for its receive.
func (c *Connection) ReceivePatience() clock.Time {
	switch {
	case c.ByNumber || c.RNRRetry >= RNRForever:
		return NoLimit // by number the sender ends the wait
	case c.QP == nil || c.QP.Attr.MinRNRTimer == 0:
		return receiverWait
	}
	return rnrPatience(uint32(c.RNRRetry), uint8(c.QP.Attr.MinRNRTimer))
}

// FailNotReady fails the send whose message waits for a receive of the peer's: the
// oldest that takes one and was not carried. Those before it were carried out. False:
// no send waits for one.
func (q *QP) FailNotReady() bool {
	s := &q.SQ
	for i := s.head; i != s.tail; i++ {
		wr := s.At(i)
		if wr.Started && wr.Op.TakesReceive && (wr.State != SendSent || wr.mark > q.acked) {
			q.CompleteBefore(i)
			q.FailOldest(abi.StatusRNRRetryExcErr, reason.NotReady)
			return true
		}
	}
	return false
}
