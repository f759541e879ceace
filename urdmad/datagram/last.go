package datagram

import (
	"time"

	"urdma/urdmad/qp"
	"urdma/verbs/abi"
)

const (
	// lastPatience bounds how long what was posted last may take to leave.
	lastPatience = 100 * time.Millisecond
	// lastTurns are waited for at once and however long they take: one to take what was
	// posted, one in which it leaves, one to see that. The later ones come a little
	// apart: a port may be full.
	lastTurns = 3
	lastPause = 50 * time.Microsecond
)

// SendLast waits until queue pairs that are about to go have sent what their client
// has posted, if their sends need nobody's answer (types UD and UC): until unsent is
// false of them. An adapter has long done so when it hears of the end, so there are
// programs that destroy a queue pair, or just end, without having waited for
// completions. What can't leave within lastPatience is lost, as a network may lose it.
// do runs a function in the engine's place, between two turns, and waits for it;
// it is not called on the engine's own thread.
func SendLast(do func(func()), unsent func() bool) {
	left := true
	for n, begun := 0, time.Now(); left && (n < lastTurns || time.Since(begun) < lastPatience); n++ {
		if n >= lastTurns {
			time.Sleep(lastPause)
		}
		do(func() { left = unsent() })
	}
}

// Unsent takes what was posted to a queue pair, and reports whether some of it has not
// left and will without an answer.
func Unsent(q *qp.QP) bool {
	if q.Type != abi.QPTypeUD && q.Type != abi.QPTypeUC || q.Carrier() == nil {
		return false
	}
	q.Post()
	return q.State() == abi.QPSRTS && q.SQ.Posted() > 0
}
