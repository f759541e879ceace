package roce

import (
	"net/netip"

	"urdma/reason"
	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/qp"
	"urdma/urdmad/core/rc"
	"urdma/verbs/abi"
	"urdma/wire"
)

// fail ends the connection because of a failure found by the requester: the failed work request completes
// with an error, those before it with success.
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

// end ends the connection for a reason, and flushes the queue pair. The peer of a connection by number is
// not informed: its requests are no longer answered, as with an adapter.
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
		if key := (requestKey{c.port, c.Peer.Addr(), uint32(c.peer)}); c.s.peers[key] == c {
			delete(c.s.peers, key)
		}
		c.left(why)
	} else {
		c.path.Leave()
	}
}

// endPerTurn bounds the connections that one turn ends because their address was removed.
const endPerTurn = 64

// EndFrom ends the connections whose local address was removed from the port, a bounded number in each
// turn.
func (p *Port) EndFrom(local netip.Addr) {
	n := 0
	for _, c := range p.s.conns {
		if c.port != p || c.Local.Addr() != local {
			continue
		}
		if n++; n > endPerTurn {
			p.s.clock.Set(clock.NewTimer(func() { p.EndFrom(local) }), p.s.clock.Now+1)
			return
		}
		c.QP.FailOldest(abi.StatusRetryExcErr, reason.AddressGone)
		c.end(qp.CloseMoved)
	}
}

// Failed implements qp.Carrier.
func (c *Conn) Failed() { c.end(qp.CloseLocal) }

// Detach implements qp.Carrier.
func (c *Conn) Detach() {
	if c.QP == nil {
		return
	}
	c.end(qp.CloseLocal)
	c.QP.Detach()
	c.QP = nil
}
