package injector

import (
	"urdma/inject"
	"urdma/urdmad/control"
	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/mem"
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

// chance reports whether a behaviour is done this time: each time, or one time in n.
func (c *client) chance(behaviour uint32, oneIn int) bool {
	i := c.strictly(behaviour)
	if i == nil || i.IntN(oneIn) != 0 {
		return false
	}
	c.hit(i)
	return true
}

// pick is which of the receives of a shared receive queue a message takes; 0: the oldest.
func (c *client) pick(posted int) int {
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

// notReady reports whether a message waits for its receive: only at queue pairs whose peers try
// again.
func (c *client) notReady(q *qp.QP) bool {
	return q.Type != abi.QPTypeUD && q.Type != abi.QPTypeUC && c.chance(abi.StrictRNR, oneIn)
}

// write is an RDMA Write that is arriving.
type write struct {
	until clock.Time // when the piece of it that is kept back is placed; 0: none is
}

// keepsBytes places the last byte of a piece of a Write, and keeps the others back, if that is
// wanted. The piece comes again.
func (c *client) keepsBytes(q *qp.QP, w *write, r *mem.Region, va uint64, data []byte) bool {
	now := c.w.Engine.Clock.Now
	if w.until == 0 {
		if !c.chance(abi.StrictWriteOrder, 2) {
			return false
		}
		last := len(data) - 1
		q.Store(r, va+uint64(last), data[last:])
		w.until = now + lateBytes
	}
	if now < w.until {
		return true
	}
	w.until = 0
	return false
}

// reused returns a name that was given back, for what is made now, or 0.
func reused[T ~uint32](c *client, name *T) (n T) {
	if *name != 0 && c.chance(abi.StrictReuse, 1) {
		n, *name = *name, 0
	}
	return n
}

// checkFit has a send fail that the attributes of the two ends do not allow. Queue pairs that
// are connected by number alone: rdma_cm has had the others agree.
func (c *client) checkFit(q *qp.QP, at uint32) {
	i, conn := c.strictly(abi.StrictAttributes), q.Connection()
	if i == nil || q.Type != abi.QPTypeRC || conn == nil || !conn.ByNumber {
		return
	}
	status := uint32(abi.StatusRemInvReqErr)
	switch own, peerMTU, n := &q.Attr, uint32(conn.PeerMTU), q.SQ.At(at).Length; {
	case peerMTU != 0 && (own.SQPSN^conn.PeerPSN)&0xffffff != 0:
		status = abi.StatusRetryExcErr // the peer drops its packets
	case peerMTU != 0 && own.PathMTU != peerMTU && n > 128<<min(own.PathMTU, peerMTU),
		readsWith(q, at) > control.PeerReads(q):
	default:
		return
	}
	c.hit(i)
	fail(q, at, status)
}

// readsWith is how many Reads and atomics are under way with send i, up to max_rd_atomic, if it
// is one; else 0. It looks backwards: each send is passed by so many Reads behind it, not by all.
func readsWith(q *qp.QP, i uint32) (reads uint32) {
	if !q.SQ.At(i).IsRead() {
		return 0
	}
	for j := i; reads < q.Attr.MaxRdAtomic; j-- {
		if q.SQ.At(j).IsRead() {
			reads++
		}
		if j == q.SQ.Head() {
			break
		}
	}
	return reads
}
