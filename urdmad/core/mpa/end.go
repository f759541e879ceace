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

// This file ends connections: for the program, for the peer, on TCP's errors, and by a Terminate.

const (
	drainTime  = clock.Second // longest time that Disconnect waits for posted work
	drainCheck = clock.Millisecond
	closeTime  = 2 * clock.Second  // longest wait for a peer's end of the stream, or for any acknowledgement by it
	closeLimit = 60 * clock.Second // longest time in which a peer must receive what was sent before our end
)

// Disconnect ends the connection gracefully: it sends the work already posted (for at most a second), then
// the end of the stream.
func (c *Conn) Disconnect() {
	if c.state == connOpen && c.QP != nil {
		c.QP.Post() // the doorbell may not have been processed; an invalid send queue ends the connection
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

// Withdrawn reports whether the peer disconnected before its request was answered.
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

// Failed implements qp.Carrier.
func (c *Conn) Failed() {
	if c.live() {
		c.reason = qp.CloseLocal
		c.finish()
	}
}

// Faulted implements qp.Carrier.
func (c *Conn) Faulted() bool { return c.placing }

// Detach implements qp.Carrier.
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
	c.flushAndReport()
	c.shut()
}

// flushAndReport flushes the queue pair and reports the end.
func (c *Conn) flushAndReport() {
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

// abort ends the connection immediately: the peer sees a reset.
func (c *Conn) abort() {
	if !c.live() {
		return
	}
	c.state = connTerminating
	c.flushAndReport()
	c.reset()
}

// endWith ends the connection with a Terminate for a cause, sent after the composed FPDUs.
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
	c.flushAndReport()
	if kept {
		c.out.put(message)
		c.flush()
	}
	c.shut()
}

// terminated handles the peer's Terminate.
func (c *Conn) terminated(seg *rdmap.Segment) {
	wire.FixTerminate(seg.Head[min(wire.UntaggedLen, len(seg.Head)):])
	code, err := c.stream.Terminated(seg)
	if !c.live() {
		return
	}
	c.s.log.Info("peer terminated the connection", "qpn", c.QP.QPN, "client", c.QP.Client.Name, "cause", code.String(),
		"error", err)
	c.reason = qp.CloseTerminated
	c.finish()
}

// revoked ends the connection because memory from which a segment is sent was deregistered after its work
// request was posted.
func (c *Conn) revoked(token uint64) {
	seg, code := c.stream.Revoked(token)
	if seg == nil {
		c.Failed()
		return
	}
	c.endWith(fpdu(c.stream.RefuseRevoked(seg, code), c.terms.CRC), code)
}

// shut ends our side of the stream once everything is sent, and waits for the peer's end.
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
	_ = unix.Shutdown(c.fd, unix.SHUT_WR) // fails if the connection was reset
	c.watch()
}

// closeTimedOut handles a peer whose end of the stream has not arrived in time. While the peer still
// receives earlier data, it has not seen our end. If it receives nothing, because its program posts no
// receives, it would never see our end after those data; a reset needs no space in its receive buffer.
func (c *Conn) closeTimedOut() {
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

// acknowledged returns how many bytes the peer's host has acknowledged.
func (c *Conn) acknowledged() uint64 {
	waiting, err := unix.IoctlGetInt(c.fd, unix.TIOCOUTQ)
	if err != nil {
		return c.out.taken
	}
	return c.out.taken - min(c.out.taken, uint64(waiting))
}

// reset closes the socket and discards unsent data: the peer sees a reset.
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

// lostEarly ends a connection that has not begun or has already ended.
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
		// The program still has to answer: its answer fails then. The end of the peer's stream counts as a
		// reset: the peer could not send an FPDU any more.
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

// ended handles the end of the peer's stream.
func (c *Conn) ended() {
	if !c.live() {
		c.lostEarly(unix.ECONNRESET)
		return
	}
	c.reason = qp.CloseRemote
	c.finish()
}

// faulted ends the connection because the kernel could not access the program's memory.
func (c *Conn) faulted() {
	c.completeDelayed()
	c.s.log.Error("client memory cannot be touched; its queue pair fails", "qpn", c.QP.QPN, "client", c.QP.Client.Name)
	c.QP.FlushWithEvent(qp.EventAccess, reason.Memory)
	c.abort()
}

// close closes the socket. The kernel still sends the data it has, unless received data were not read: then
// the peer sees a reset.
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

// fail ends a connection that was accepted but did not begin.
func (c *Conn) fail(why qp.CloseReason) {
	c.reason = why
	c.close()
	if !c.reported {
		c.reported = true
		c.s.handler.Closed(&c.Connection, why)
	}
}
