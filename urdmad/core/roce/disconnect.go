package roce

import (
	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/qp"
	"urdma/wire/ibcm"
)

// This file ends connections of rdma_cm: by disconnection, by giving up, or by a reject.

const (
	drainTime  = clock.Second // longest time that Disconnect waits for posted work
	drainCheck = clock.Millisecond
	dreqEvery  = 200 * clock.Millisecond
	dreqTries  = 5
)

// Disconnect ends the connection gracefully: it sends the work already posted (for at most a second), then
// a DREQ. A connection that was never started is given up.
func (c *Conn) Disconnect() {
	h := c.shake
	switch {
	case !c.live():
		c.Release()
	case h.until == 0:
		c.QP.Post() // the doorbell may not have been processed
		h.until = c.now() + drainTime
		c.drain()
	}
}

func (c *Conn) drain() {
	h := c.shake
	if !c.live() {
		return
	}
	if c.now() >= h.until || c.QP.SQ.Empty() && c.req.Idle() && c.resp.Owed() == 0 {
		c.end(qp.CloseLocal)
		return
	}
	c.ready()
	c.s.clock.Set(h.timer, min(h.until, c.now()+drainCheck))
}

// Release gives up a connection that was never started, and informs the peer if it knows of the connection.
func (c *Conn) Release() {
	h := c.shake
	switch h.state {
	case requesting:
		c.manage(&ibcm.Message{Kind: ibcm.REJ, TID: h.tid, Local: h.local, Refused: ibcm.RefusedNone, Reason: ibcm.TimedOut,
			GUID: c.port.guid()})
		c.forget()
	case replied:
		c.manage(&ibcm.Message{Kind: ibcm.REJ, TID: h.theirs.TID, Local: h.local, Remote: h.remote, Refused: ibcm.RefusedREP,
			Reason: ibcm.ConsumerDefined})
		c.forget()
	case opening:
		c.forget()
	case requested:
		if !c.live() {
			c.reject(nil, ibcm.TimedOut)
		}
	}
}

// Withdrawn reports whether the peer has withdrawn its request.
func (c *Conn) Withdrawn() bool { return c.shake.withdrawn }

// Abort ends a connection whose peer never answered.
func (c *Conn) Abort() { c.end(qp.CloseDead) }

// left reports the end to the connection manager, and to the peer unless it knows.
func (c *Conn) left(why qp.CloseReason) {
	h := c.shake
	c.s.handler.Closed(&c.Connection, why)
	switch {
	case h.state == requested:
		c.reject(nil, ibcm.NoResources)
		return
	case why == qp.CloseRemote:
		c.forget()
		return
	}
	h.state = disconnecting
	h.ours = ibcm.Message{Kind: ibcm.DREQ, TID: h.tid, Local: h.local, Remote: h.remote, QPN: c.peer}
	c.tick()
}

// tick is the timer function of a connection that is ending or rejected.
func (c *Conn) tick() {
	switch h := c.shake; h.state {
	case disconnecting:
		if h.tries++; h.tries > dreqTries {
			c.forget()
			return
		}
		c.manage(&h.ours)
		c.s.clock.Set(h.timer, c.now()+dreqEvery)
	case rejected:
		c.s.rejected--
		c.forget()
	default:
		c.drain()
	}
}

// forget releases the connection's communication ID and path.
func (c *Conn) forget() {
	h := c.shake
	h.state = over
	c.s.clock.Set(h.timer, clock.Never)
	c.path.Leave()
	if c.s.ids[h.local] == c {
		delete(c.s.ids, h.local)
	}
	if key := (requestKey{c.port, c.Peer.Addr(), h.remote}); c.s.asked[key] == c {
		delete(c.s.asked, key)
	}
}
