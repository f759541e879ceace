package control

import (
	"time"

	"urdma/urdmad/core/qp"
)

const (
	// The first lastTurns turns follow each other without a pause, however long they take: one
	// fetches the posts, one sends them, one sees the result. Later turns come a little
	// apart, because a port may be full, and a peer's acknowledgement takes time.
	lastTurns = 3
	lastPause = 50 * time.Microsecond
)

// SendLast waits until queue pairs that are about to be removed have sent their client's last
// posts, that is, until left (qp.QP.SendLast) returns false. Posts that cannot leave within
// qp.LastSendTimeout are lost. The client's memory stays mapped meanwhile, even if the process
// has ended.
func (x *Session) SendLast(left func() bool) {
	more := true
	for n, begun := 0, time.Now(); more && (n < lastTurns || time.Since(begun) < time.Duration(qp.LastSendTimeout)); n++ {
		if n >= lastTurns {
			time.Sleep(lastPause)
		}
		x.Do(func() { more = left() })
	}
}
