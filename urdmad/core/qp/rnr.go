package qp

import (
	"urdma/reason"
	"urdma/urdmad/core/clock"
	"urdma/verbs/abi"
)

// This file has the rule for a message that finds no receive posted. InfiniBand answers it with
// an RNR NAK and the sender tries again, and programs written for InfiniBand rely on that. Here
// the message waits for the receive.
//
// The limit applies to each message separately, and the work request whose message waits is the
// one that fails:
//
//   - If the queue pairs were connected by ibv_modify_qp(3), the limit is the sender's
//     rnr_retry times the receiver's min_rnr_timer, and only the sender fails.
//   - If they were connected through rdma_cm, the limit is the receiver's rnr_retry_count
//     (rdma_connect(3)) times its min_rnr_timer, or times 100 ms if the program has set none.
//     The connection then ends as RFC 5041 section 7 says (no buffer).
//   - 7 retries mean no limit.

// NotReady measures how long one message waits for a receive.
type NotReady struct {
	waiting bool
	message uint64 // the carrier's number of the message
	since   clock.Time
	pause   clock.Time // time until the receive queue is checked again
}

const (
	rnrFirst = 20 * clock.Microsecond // first pause; each pause doubles,
	rnrMax   = clock.Millisecond      // up to this
)

// Waiting reports whether a message waits.
func (w *NotReady) Waiting() bool { return w.waiting }

// Message returns the number of the waiting message.
func (w *NotReady) Message() uint64 { return w.message }

// Allows reports whether a message that found no receive may start or continue to wait.
func (w *NotReady) Allows(message uint64, limit, now clock.Time) bool {
	return !w.is(message) || now-w.since < limit
}

func (w *NotReady) is(message uint64) bool { return w.waiting && w.message == message }

// Wait makes a message wait from now on. It returns false if the message waits already.
func (w *NotReady) Wait(message uint64, now clock.Time) bool {
	if w.is(message) {
		return false
	}
	*w = NotReady{waiting: true, message: message, since: now, pause: rnrFirst}
	return true
}

// Restart restarts the measurement, because until now the message waited for something else.
func (w *NotReady) Restart(now clock.Time) { w.since = now }

// Since returns the time at which the wait began.
func (w *NotReady) Since() clock.Time { return w.since }

// NextLook returns the time of the next check for a receive. Checks are frequent at first.
func (w *NotReady) NextLook(now clock.Time) clock.Time {
	at := now + w.pause
	w.pause = min(2*w.pause, rnrMax)
	return at
}

// End records that the message has its receive.
func (w *NotReady) End() { w.waiting = false }

// Unready reports whether a message came before any receive was posted for it.
func (q *QP) Unready() bool { return q.unready }

// receiverWait is the time for one retry of a message on an rdma_cm connection if the receiver
// has no min_rnr_timer.
const receiverWait = 100 * clock.Millisecond

// RNRForever is the retry count that means no limit.
const RNRForever = 7

// rnrTimers are InfiniBand's values of min_rnr_timer, in units of 10 microseconds.
var rnrTimers = [32]clock.Time{65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024,
	1536,
	2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152}

func rnrWaitLimit(retries uint32, minRNRTimer uint8) clock.Time {
	if retries >= RNRForever {
		return NoLimit
	}
	return clock.Time(retries) * rnrTimers[minRNRTimer&31] * 10 * clock.Microsecond
}

// MaxSendWait returns how long the sending side lets a message wait for the peer's receive.
func (c *Connection) MaxSendWait() clock.Time {
	if !c.ByNumber || c.QP == nil {
		return NoLimit // the receiver ends the wait
	}
	return rnrWaitLimit(c.QP.Attr.RNRRetry, c.PeerRNR)
}

// MaxReceiveWait returns how long the receiving side lets a message wait for its receive.
func (c *Connection) MaxReceiveWait() clock.Time {
	switch {
	case c.ByNumber || c.RNRRetry >= RNRForever:
		return NoLimit // if ByNumber, the sender ends the wait
	case c.QP == nil || c.QP.Attr.MinRNRTimer == 0:
		return receiverWait
	}
	return rnrWaitLimit(uint32(c.RNRRetry), uint8(c.QP.Attr.MinRNRTimer))
}

// FailNotReady fails the send whose message waits for a receive: the oldest undelivered one that
// takes a receive. The sends before it were carried out. It returns false if there is none.
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
