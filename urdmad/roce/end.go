package roce

import (
	"urdma/urdmad/clock"
	"urdma/urdmad/qp"
	"urdma/urdmad/rc"
	"urdma/wire"
)

// fail ends the connection for what the requester has found: the work request to blame
// fails, those before it were carried out.
func (c *Conn) fail(h rc.Heard) {
	q := c.QP
	q.CompleteBefore(h.Token)
	q.FailOldest(failures[h.Failure].status, failures[h.Failure].why)
	if h.Failure == rc.NoAnswer {
		c.end(qp.CloseDead)
	} else {
		c.end(qp.CloseTerminated)
	}
}

// end ends the connection for a reason, and flushes the queue pair. By number the peer
// hears of nothing: its requests draw no answer any more, as from an adapter.
func (c *Conn) end(why qp.CloseReason) {
	if c.closed {
		return
	}
	c.closed = true
	c.s.clock.Set(c.timer, clock.Never)
	for i := range c.answers {
		c.answers[i].source.Release()
	}
	if q := c.QP; q != nil {
		delete(c.s.conns, wire.QPN(q.QPN))
		q.Flush(why.Why())
	}
	if c.shake != nil {
		c.left(why)
	} else {
		c.path.Leave()
	}
}

// Failed is qp.Carrier's.
func (c *Conn) Failed() { c.end(qp.CloseLocal) }

// Detach is qp.Carrier's.
func (c *Conn) Detach() {
	if c.QP == nil {
		return
	}
	c.end(qp.CloseLocal)
	c.QP.Detach()
	c.QP = nil
}
