package control

import (
	"time"

	"urdma/urdmad/core/qp"
)

const (
	// lastTurns are waited for at once and however long they take: one to take what was
	// posted, one in which it leaves, one to see that. The later ones come a little
	// apart: a port may be full, and a peer's acknowledgement takes its time.
	lastTurns = 3
	lastPause = 50 * time.Microsecond
)

// sendLast waits until queue pairs that are about to be removed have sent what their
// client has posted: until left (qp.QP.SendLast) is false. What can't leave within
// qp.LastSendTimeout is lost. Their memory stays mapped meanwhile, also that of a process
// that has ended.
func (x *Session) sendLast(left func() bool) {
	more := true
	for n, begun := 0, time.Now(); more && (n < lastTurns || time.Since(begun) < time.Duration(qp.LastSendTimeout)); n++ {
		if n >= lastTurns {
			time.Sleep(lastPause)
		}
		x.Do(func() { more = left() })
	}
}
