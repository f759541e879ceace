package trp

import (
	"urdma/reason"
	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/netif"
	"urdma/urdmad/core/qp"
	"urdma/urdmad/core/rdmap"
	"urdma/wire"
)

// termination is the state of a connection that refused a segment: the Terminate to send, and the PSN at
// which acknowledgements stop.
type termination struct {
	message    []byte // the segment, or nil
	sent       bool
	psn        wire.PSN
	frozen     bool // acknowledge nothing from frozenAt on
	frozenAt   wire.PSN
	code       wire.TermCode
	until      clock.Time // latest end of the Terminate's wait for what comes before it; 0: no wait
	answers    bool       // it waits for answers to earlier requests, too
	placing    bool       // the segment placingPSN is being delivered
	placingPSN wire.PSN
}

// freeze stops acknowledgements at psn: the peer then fails the work request of that segment, not an
// earlier one.
func (t *termination) freeze(psn wire.PSN) {
	if !t.frozen {
		t.frozen, t.frozenAt = true, psn
	}
}

// terminateToken identifies the Terminate message in the reliability layer.
const terminateToken = ^uint64(0)

// refuse answers an invalid segment: our queue pair fails, and the peer gets a Terminate with the cause and
// the headers of the refused segment.
func (c *Conn) refuse(psn wire.PSN, v rdmap.Verdict, seg *rdmap.Segment) {
	c.term.answers = true
	c.terminate(psn, v.Code, c.stream.Refusal(seg, v))
}

// revoked ends the connection because memory from which a segment is sent was deregistered after its work
// request was posted.
func (c *Conn) revoked(token uint64) {
	if c.term.until != 0 {
		return
	}
	seg, code := c.stream.Revoked(token)
	if seg == nil {
		c.Failed()
		return
	}
	c.terminate(c.rel.Expected(), code, c.stream.RefuseRevoked(seg, code))
}

func (c *Conn) terminate(psn wire.PSN, code wire.TermCode, message []byte) {
	q := c.QP
	c.s.log.Info("segment refused", "qpn", q.QPN, "client", q.Client.Name, "peer", c.Peer.String(), "cause", code.String())
	c.term.freeze(psn)
	c.term.message, c.term.code = message, code
	if c.waitsToTerminate() {
		c.term.until = c.now() + drainTime
		c.ready()
		return
	}
	c.endByTerminate()
}

// waitsToTerminate reports whether something before the refused segment is not done. For the peer all of it is
// complete: segments must be written, and Reads and atomics be answered.
func (c *Conn) waitsToTerminate() bool {
	return c.unwritten.Waits() || c.term.answers && c.stream.Serving() > 0
}

// due reports whether everything before the refused segment is done, or the Terminate has waited long enough.
func (t *termination) due(c *Conn) bool {
	return t.until != 0 && (!c.waitsToTerminate() || c.now() >= t.until)
}

func (c *Conn) endByTerminate() {
	c.term.until = 0
	c.end.reason = qp.CloseTerminated
	c.QP.FlushWithEvent(rdmap.EventOf(c.term.code), reason.Number(c.term.code))
	c.finish() // sends the Terminate, then the fin
}

// Faulted implements qp.Carrier: a segment that could not be placed must not count as received.
func (c *Conn) Faulted() bool {
	if c.term.placing {
		c.term.freeze(c.term.placingPSN)
	}
	return c.term.placing
}

// sendTerminate sends or resends the Terminate message, always with the same PSN. It may exceed the peer's
// credits, because nothing follows it.
func (c *Conn) sendTerminate() {
	t := &c.term
	if t.message == nil {
		return
	}
	frame := c.port.If.Alloc()
	if frame == nil {
		return
	}
	if !t.sent {
		t.sent = true
		t.psn = c.rel.Send(c.now(), len(t.message), terminateToken)
	}
	copy(c.room(frame), t.message)
	c.sendData(frame, t.psn, len(t.message))
}

// terminated handles the peer's Terminate, whose acknowledgement covers the segments before the refused one
// and no more (docs/WIRE.md chapter 6).
func (c *Conn) terminated(head *wire.TRP, seg *rdmap.Segment) {
	if !c.acknowledged(head) {
		return
	}
	q := c.QP
	code, err := c.stream.Terminated(seg)
	if err != nil {
		c.port.If.Drop(netif.Drop(err.Error()))
	}
	c.s.log.Info("peer terminated the connection", "qpn", q.QPN, "client", q.Client.Name, "cause", code.String())
	c.end.reason = qp.CloseTerminated
	c.finish()
}
