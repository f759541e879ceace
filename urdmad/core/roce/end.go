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
		if key := (requestKey{c.port, c.Peer.Addr(), uint32(c.peer)}); c.s.peers[key] == c {
			delete(c.s.peers, key)
		}
		c.left(why)
	} else {
		c.path.Leave()
	}
}

// forsakenPerTurn bounds the connections that end in a turn because of their address.
const forsakenPerTurn = 64

// Forsake ends the connections from an address that is the port's no more, some in each
// turn.
func (p *Port) Forsake(local netip.Addr) {
	n := 0
	for _, c := range p.s.conns {
		if c.port != p || c.Local.Addr() != local {
			continue
		}
		if n++; n > forsakenPerTurn {
			p.s.clock.Set(clock.NewTimer(func() { p.Forsake(local) }), p.s.clock.Now+1)
			return
		}
		c.QP.FailOldest(abi.StatusRetryExcErr, reason.AddressGone)
		c.end(qp.CloseMoved)
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
