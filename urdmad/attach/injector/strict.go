package injector

import (
	"urdma/inject"
	"urdma/urdmad/control"
	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
)

// This file is what urdma exec --strict has done to a client.

const (
	oneIn      = 4                       // messages, of which one waits for its receive
	lateBytes  = 300 * clock.Microsecond // of a Write, behind the last byte of a piece
	extraEvent = clock.Millisecond       // behind one that tells of a completion
)

// strictly is the rule that has a behaviour, abi.Strict*, done to the client, or nil.
func (c *client) strictly(behaviour uint32) *rule {
	for _, i := range c.at[inject.Strictly] {
		if i.Strict.Behaviours&behaviour != 0 {
			return i
		}
	}
	return nil
}

// hit counts one that was done.
func (c *client) hit(i *rule) {
	i.Hits++
	c.w.hits++
}

// Pick is qp.Faults'.
func (c *client) Pick(posted int) int {
	i := c.strictly(abi.StrictSRQOrder)
	if i == nil {
		return 0
	}
	which := i.IntN(posted)
	if which > 0 {
		c.hit(i)
	}
	return which
}

// chance reports whether a behaviour is done this time: each time, or one time in n.
func (c *client) chance(behaviour uint32, oneIn int) bool {
	i := c.strictly(behaviour)
	if i == nil || i.IntN(oneIn) != 0 {
		return false
	}
	c.hit(i)
	return true
}

// strictVerdict has a message wait for its receive; only queue pairs whose peers try again.
func (c *client) strictVerdict(q *qp.QP, m qp.Message) qp.Verdict {
	if m == qp.MessageSend && q.Type != abi.QPTypeUD && q.Type != abi.QPTypeUC && c.chance(abi.StrictRNR, oneIn) {
		return qp.Verdict{Is: qp.NoReceive}
	}
	return qp.Verdict{}
}

// notifyAgain is how long after a completion event another comes, or 0.
func (c *client) notifyAgain() clock.Time {
	if c.chance(abi.StrictSpurious, 1) {
		return extraEvent
	}
	return 0
}

// Place is qp.Faults'.
func (c *client) Place(*qp.QP) clock.Time {
	if c.chance(abi.StrictWriteOrder, 2) {
		return lateBytes
	}
	return 0
}

// reused returns a name that was given back, for what is made now, or 0.
func reused[T ~uint32](c *client, name *T) (n T) {
	if *name != 0 && c.chance(abi.StrictReuse, 1) {
		n, *name = *name, 0
	}
	return n
}

// Misfit is qp.Faults'. Queue pairs that are connected by number alone: rdma_cm has had the
// others agree.
func (c *client) Misfit(q *qp.QP, reads int, length uint32) uint32 {
	i, conn := c.strictly(abi.StrictAttributes), q.Connection()
	if i == nil || q.Type != abi.QPTypeRC || conn == nil || !conn.ByNumber {
		return abi.StatusSuccess
	}
	status := uint32(abi.StatusSuccess)
	switch own := &q.Attr; {
	case conn.PeerMTU != 0 && (own.SQPSN^conn.PeerPSN)&0xffffff != 0:
		status = abi.StatusRetryExcErr // the peer drops its packets
	case conn.PeerMTU != 0 && own.PathMTU != uint32(conn.PeerMTU) && length > 128<<min(own.PathMTU, uint32(conn.PeerMTU)),
		uint32(reads) > control.PeerReads(q):
		status = abi.StatusRemInvReqErr
	default:
		return status
	}
	c.hit(i)
	return status
}
