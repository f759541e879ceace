package injector

import (
	"urdma/inject"
	"urdma/urdmad/control/objects"
	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/mem"
	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
)

// This file has the effects of urdma exec --strict on a client.

const (
	oneIn      = 4                       // one in this many messages waits for its receive
	lateBytes  = 300 * clock.Microsecond // delay of the other bytes of a Write's piece after its last byte
	extraEvent = clock.Millisecond       // delay of the extra event after a completion event
)

// strictly returns the client's rule for a behaviour, abi.Strict*, or nil.
func (c *client) strictly(behaviour uint32) *rule {
	for _, i := range c.at[inject.Strictly] {
		if i.Strict.Behaviours&behaviour != 0 {
			return i
		}
	}
	return nil
}

// hit counts a hit.
func (c *client) hit(i *rule) {
	i.Hits++
	c.w.hits++
}

// chance decides at random whether a behaviour happens: one time in oneIn.
func (c *client) chance(behaviour uint32, oneIn int) bool {
	i := c.strictly(behaviour)
	if i == nil || i.IntN(oneIn) != 0 {
		return false
	}
	c.hit(i)
	return true
}

// pick chooses which waiting receive of a shared receive queue a message takes; 0 is the oldest.
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

// notReady decides whether a message waits for its receive. It does so only at queue pairs whose
// peers retry.
func (c *client) notReady(q *qp.QP) bool {
	return q.Type != abi.QPTypeUD && q.Type != abi.QPTypeUC && c.chance(abi.StrictRNR, oneIn)
}

// write is an RDMA Write that is arriving.
type write struct {
	until clock.Time // time at which its delayed piece is placed; 0: none is delayed
}

// keepsBytes may place only the last byte of a piece of a Write and delay the other bytes. The
// carrier then tries the piece again.
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

// reused returns a freed number for a new object, or 0.
func reused[T ~uint32](c *client, name *T) (n T) {
	if *name != 0 && c.chance(abi.StrictReuse, 1) {
		n, *name = *name, 0
	}
	return n
}

// checkFit fails a send that the attributes of the two ends do not allow. It checks only queue
// pairs connected by ibv_modify_qp, because rdma_cm makes the attributes agree.
func (c *client) checkFit(q *qp.QP, at uint32) {
	i, conn := c.strictly(abi.StrictAttributes), q.Connection()
	if i == nil || q.Type != abi.QPTypeRC || conn == nil || !conn.ByNumber {
		return
	}
	status := uint32(abi.StatusRemInvReqErr)
	switch own, peerMTU, n := &q.Attr, uint32(conn.PeerMTU), q.SQ.At(at).Length; {
	case peerMTU != 0 && (own.SQPSN^conn.PeerPSN)&0xffffff != 0:
		status = abi.StatusRetryExcErr // the peer drops the packets
	case peerMTU != 0 && own.PathMTU != peerMTU && n > 128<<min(own.PathMTU, peerMTU),
		readsWith(q, at) > objects.PeerReads(q):
	default:
		return
	}
	c.hit(i)
	fail(q, at, status)
}

// readsWith returns how many Reads and atomics are outstanding with send i, up to max_rd_atomic;
// 0 if send i is neither. It counts backwards, so that each send is visited only a limited number
// of times.
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
