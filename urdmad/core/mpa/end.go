package mpa

import (
	"urdma/reason"
	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/qp"
	"urdma/urdmad/core/rdmap"
	"urdma/verbs/abi"
	"urdma/wire"

	"golang.org/x/sys/unix"
)

// The ends of a connection: the program's, the peer's, TCP's, and those by a Terminate.

const (
	drainTime  = clock.Second // longest that Disconnect waits for posted work
	drainCheck = clock.Millisecond
	closeTime  = 2 * clock.Second  // longest that a peer's end of the stream is waited for, or that it takes nothing
	closeLimit = 60 * clock.Second // longest that a peer takes what it was sent before our end
)

// Disconnect ends the connection in good order: work already posted goes out (for a
// second at most), then the end of the stream.
func (c *Conn) Disconnect() {
	if c.state == connOpen && c.QP != nil {
		c.QP.Post() // its bell may not be answered yet; a send queue that is wrong ends the connection
		c.completeDelayed()
	}
	switch c.state {
	case connOpen:
		c.reason, c.state = qp.CloseLocal, connDraining
		c.s.clock.Set(c.timer, c.now()+drainTime)
		c.drain(c.now() + drainTime)
	case connDraining, connTerminating, connClosing, connClosed:
	default:
		if c.pending != nil { // accepted
			c.fail(qp.CloseLocal)
		}
		c.Release()
	}
}

func (c *Conn) drain(until clock.Time) {
	if c.state != connDraining {
		return
	}
	if c.now() >= until || c.QP == nil || c.QP.State() != abi.QPSRTS || c.stream.Drained() && c.out.empty() {
		c.finish()
		return
	}
	c.s.table.Ready(c.QP)
	t := clock.NewTimer(func() { c.drain(until) })
	c.s.clock.Set(t, min(until, c.now()+drainCheck))
}

// Release gives up a connection that was never started.
func (c *Conn) Release() {
	if c.state < connOpen {
		c.close()
	}
}

// Withdrawn reports whether the peer has gone while its request was to be answered.
func (c *Conn) Withdrawn() bool { return c.state == connRequested && c.fd < 0 }

// Abort ends a connection whose peer never answered.
func (c *Conn) Abort() {
	switch {
	case c.live():
		c.reason = qp.CloseDead
		c.abort()
	case c.state == connStarting:
		c.fail(qp.CloseDead)
	}
}

// Failed is qp.Carrier's.
func (c *Conn) Failed() {
	if c.live() {
		c.reason = qp.CloseLocal
		c.finish()
	}
}

// Faulted is qp.Carrier's.
func (c *Conn) Faulted() bool { return c.placing }

// Detach is qp.Carrier's.
func (c *Conn) Detach() {
	c.Failed()
	if c.QP != nil {
		c.s.remember(c)
		c.QP.Detach()
		c.QP = nil
	}
}

// finish flushes the queue pair, ends our side of the stream and reports the end.
func (c *Conn) finish() {
	if !c.live() {
		return
	}
	c.keepBegun()
	c.state = connTerminating
	c.leave()
	c.shut()
}

// leave flushes the queue pair and reports the end.
func (c *Conn) leave() {
	c.completeDelayed()
	c.s.clock.Set(c.again, clock.Never)
	c.s.clock.Set(c.silence.timer, clock.Never)
	c.rnr.End()
	c.stream.Drop()
	if c.QP != nil {
		c.QP.Flush(c.reason.Why())
	}
	if !c.reported {
		c.reported = true
		c.s.handler.Closed(&c.Connection, c.reason)
	}
}

// abort ends the connection without order: the peer sees a reset.
func (c *Conn) abort() {
	if !c.live() {
		return
	}
	c.state = connTerminating
	c.leave()
	c.reset()
}

// endWith ends the connection with a Terminate for a cause, behind what was composed.
func (c *Conn) endWith(message []byte, code wire.TermCode) {
	if !c.live() {
		return
	}
	c.completeDelayed()
	c.flush()
	if !c.live() {
		return
	}
	kept := c.keepBegun()
	c.reason = qp.CloseTerminated
	c.QP.FlushWithEvent(rdmap.EventOf(code), reason.Number(code))
	c.state = connTerminating
	c.leave()
	if kept {
		c.out.put(message)
		c.flush()
	}
	c.shut()
}

// terminated takes the peer's Terminate.
func (c *Conn) terminated(seg *rdmap.Segment) {
	wire.FixTerminate(seg.Head[min(wire.UntaggedLen, len(seg.Head)):])
	code, err := c.stream.Terminated(seg)
	if !c.live() {
		return
	}
	c.s.log.Info("peer terminated the connection", "qpn", c.QP.QPN, "client", c.QP.Client.Name, "cause", code.String(), "error", err)
	c.reason = qp.CloseTerminated
	c.finish()
}

// revoked ends the connection because memory that a segment comes from was deregistered
// after the work began.
func (c *Conn) revoked(token uint64) {
	seg, code := c.stream.Revoked(token)
	if seg == nil {
		c.Failed()
		return
	}
	c.endWith(fpdu(c.stream.RefuseRevoked(seg, code), c.terms.CRC), code)
}

// shut ends our side of the stream once all has gone, and waits for the peer's end.
func (c *Conn) shut() {
	if c.state == connClosed {
		return
	}
	c.acked, c.closeBy = c.acknowledged(), c.now()+closeLimit
	c.s.clock.Set(c.timer, c.now()+closeTime)
	if !c.out.empty() {
		c.state = connTerminating
		c.watch()
		return
	}
	c.state = connClosing
	_ = unix.Shutdown(c.fd, unix.SHUT_WR) // a reset connection is shut already
	c.showEnd(true)
	c.watch()
}

// unfinished: the peer's end of the stream has not come in time. While a peer takes what it
// was sent, it has not seen ours. One that takes nothing, since its program posts no
// receives, would never see ours behind that: a reset needs no room.
func (c *Conn) unfinished() {
	switch acked := c.acknowledged(); {
	case acked == c.out.taken:
		c.close()
	case acked > c.acked && c.now() < c.closeBy:
		c.acked = acked
		c.s.clock.Set(c.timer, c.now()+closeTime)
	default:
		c.reset()
	}
}

// acknowledged is how many bytes of those that the kernel took the peer's host has.
func (c *Conn) acknowledged() uint64 {
	waiting, err := unix.IoctlGetInt(c.fd, unix.TIOCOUTQ)
	if err != nil {
		return c.out.taken
	}
	return c.out.taken - min(c.out.taken, uint64(waiting))
}

// reset gives the socket back, and what it has not sent yet up: the peer sees a reset.
func (c *Conn) reset() {
	if c.state != connClosed {
		_ = unix.SetsockoptLinger(c.fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
	}
	c.close()
}

// lost ends a connection that TCP has given up or the peer has reset.
func (c *Conn) lost(errno unix.Errno) {
	c.completeDelayed()
	if !c.live() {
		c.lostEarly(errno)
		return
	}
	c.s.log.Info("connection lost", "qpn", c.QP.QPN, "peer", c.Peer.String(), "error", errno.Error())
	c.reason = qp.CloseRemote
	if errno == unix.ETIMEDOUT || errno == unix.EHOSTUNREACH {
		c.reason = qp.CloseDead
		c.QP.FailOldest(abi.StatusRetryExcErr, reason.Silent)
	}
	c.abort()
}

// lostEarly ends a connection that has not begun, or is over.
func (c *Conn) lostEarly(errno unix.Errno) {
	was := c.state
	switch was {
	case connStarting:
		c.fail(qp.CloseRemote)
		return
	case connRequested:
		if c.pending != nil {
			c.fail(qp.CloseRemote)
			return
		}
		// The program is still to answer: it hears of the end when it does. The end of the
		// peer's stream is as good as a reset: it could not send an FPDU any more.
		c.s.forget(c)
		return
	}
	if was == connRequesting && errno == unix.ECONNRESET && len(c.frame) == 0 && c.askOlder() {
		return
	}
	c.close()
	if was == connConnecting || was == connRequesting {
		c.s.handler.Refused(c, errno)
	}
}

// ended: the peer sends nothing more.
func (c *Conn) ended() {
	c.showEnd(false)
	if !c.live() {
		c.lostEarly(unix.ECONNRESET)
		return
	}
	c.reason = qp.CloseRemote
	c.finish()
}

// faulted: the kernel could not touch the program's memory.
func (c *Conn) faulted() {
	c.completeDelayed()
	c.s.log.Error("client memory cannot be touched; its queue pair fails", "qpn", c.QP.QPN, "client", c.QP.Client.Name)
	c.QP.FlushWithEvent(qp.EventAccess, reason.Memory)
	c.abort()
}

// close gives the socket back. The kernel goes on sending what it has, unless some of the
// peer's was not read: then the peer sees a reset.
func (c *Conn) close() {
	if c.state == connClosed {
		return
	}
	c.state = connClosed
	c.s.clock.Set(c.timer, clock.Never)
	c.s.clock.Set(c.again, clock.Never)
	c.s.forget(c)
	if c.in.buf != nil {
		c.s.buffers.put(c.in.buf)
		c.in.buf = nil
	}
	c.out.reset(c.s)
}

// fail ends a connection that was accepted and did not begin.
func (c *Conn) fail(why qp.CloseReason) {
	c.reason = why
	c.close()
	if !c.reported {
		c.reported = true
		c.s.handler.Closed(&c.Connection, why)
	}
}
