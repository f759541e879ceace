package trp

import (
	"net/netip"

	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
	"urdma/wire"
)

const (
	finEvery   = 100 * clock.Millisecond // between repeated fins
	finTries   = 5
	finWait    = 5 * finEvery / 2 // longest time that a fin waits for missing segments before it
	drainTime  = clock.Second     // longest time that Disconnect waits for posted work
	drainCheck = clock.Millisecond
	lingerTime = clock.Second // time for which a closed connection keeps its port number
)

// ending is the progress of a connection's end.
type ending struct {
	reason     qp.CloseReason
	reported   bool // Manager.Closed was called
	tries      int
	drainUntil clock.Time
	finPending bool // a fin arrived before data that precedes it
	finPSN     wire.PSN
	finUntil   clock.Time // then the fin ends the connection despite missing data: its sender resends nothing
	answerFrom clock.Time // a late fin is not answered before this time
}

// Disconnect ends the connection gracefully: it sends the work already posted (for at most a second), then
// a fin.
func (c *Conn) Disconnect() {
	if c.state == connOpen && c.QP != nil {
		c.QP.Post() // the doorbell may not have been processed; an invalid send queue ends the connection
	}
	switch c.state {
	case connOpening:
		c.Release()
	case connOpen:
		c.end.reason = qp.CloseLocal
		c.state = connDraining
		c.end.drainUntil = c.now() + min(drainTime, c.s.cfg.DeathTimeout)
		c.tickDraining()
	}
}

func (c *Conn) tickDraining() {
	if c.tickPeer() {
		return
	}
	if c.now() >= c.end.drainUntil || c.stream.Drained() || c.QP == nil || c.QP.State() != abi.QPSRTS {
		c.finish()
		return
	}
	c.ready()
	c.s.clock.Set(c.timer, min(c.end.drainUntil, c.now()+drainCheck))
}

// Abort ends a connection whose peer never answered.
func (c *Conn) Abort() {
	if c.state == connOpen {
		c.end.reason = qp.CloseDead
		c.finish()
	}
}

// Failed implements qp.Carrier.
func (c *Conn) Failed() {
	if c.live() {
		c.end.reason = qp.CloseLocal
		c.finish()
	}
}

// Detach implements qp.Carrier.
func (c *Conn) Detach() {
	c.Failed()
	if c.QP != nil {
		c.port.remember(c)
		c.QP.Detach()
		c.QP = nil
	}
}

// cutPerTurn bounds the connections that one turn ends because their port lost its address or link.
const cutPerTurn = 64

// EndFrom ends the connections whose local address was removed from the port or can send nothing any more,
// a bounded number in each turn, and returns the number that it found.
func (p *Port) EndFrom(local netip.Addr) (n int) {
	over := func(c *Conn) bool { return c != nil && c.live() && c.Local.Addr() == local }
	for _, c := range p.conns {
		if over(c) {
			n++
		}
	}
	var timer *clock.Timer
	next := 0
	timer = clock.NewTimer(func() {
		for n := 0; next < len(p.conns) && n < cutPerTurn; next++ {
			if c := p.conns[next]; over(c) {
				c.endUnreachable(qp.CloseMoved)
				n++
			}
		}
		if next < len(p.conns) {
			p.s.clock.Set(timer, p.s.clock.Now+1)
		}
	})
	p.s.clock.Set(timer, p.s.clock.Now)
	return n
}

// endSilent ends a connection whose peer is silent.
func (c *Conn) endSilent() {
	c.s.log.Info("peer is silent, connection ends", "peer", c.Peer.String(), "qpn", c.QP.QPN)
	c.endUnreachable(qp.CloseDead)
}

// endUnreachable ends a connection whose peer can't be reached.
func (c *Conn) endUnreachable(why qp.CloseReason) {
	c.end.reason = why
	c.QP.FailOldest(abi.StatusRetryExcErr, why.Why())
	c.finish()
}

// finish flushes the queue pair, sends the fin and reports the end.
func (c *Conn) finish() {
	if !c.live() {
		return
	}
	c.state = connFin
	c.end.tries = 0
	c.stream.Drop()
	c.s.leaveQP(c)
	if !c.end.reported {
		c.end.reported = true
		c.s.handler.Closed(&c.Connection, c.end.reason)
	}
	if c.end.reason.Dead() {
		c.close()
		return
	}
	c.sendFin()
	if c.passive && !c.heard && !c.ByNumber {
		// Nothing proves that the peer is at the address in its request, so the address gets only one fin
		// (docs/WIRE.md chapter 3). If that fin is lost, the peer's next packet draws another; an idle peer
		// sends keep-alive probes.
		c.close()
		c.end.tries = 1
		c.s.clock.Set(c.timer, c.now()+c.s.cfg.DeathTimeout)
		return
	}
	c.s.clock.Set(c.timer, c.now()+finEvery)
}

// leaveQP flushes the queue pair, or leaves it unchanged if it outlives the connection.
func (s *Stack) leaveQP(c *Conn) {
	switch q := c.QP; {
	case q == nil:
	case !c.ByNumber || c.end.reason != qp.CloseRemote && c.end.reason != qp.CloseDead:
		q.Flush(c.end.reason.Why())
	case s.table.PeerLeft(q):
		c.port.remember(c)
		c.QP = nil
	}
}

// sendFin sends a fin, preceded by the Terminate if there is one.
func (c *Conn) sendFin() {
	c.sendTerminate()
	if c.port.If.Alloc() != nil {
		c.sendBare(wire.OpFin, 0, nil)
	}
}

func (c *Conn) tickFin() {
	if c.end.tries++; c.end.tries >= finTries {
		c.close()
		return
	}
	c.sendFin()
	c.s.clock.Set(c.timer, c.now()+finEvery)
}

// close keeps the port number for lingerTime, to answer late packets.
func (c *Conn) close() {
	c.state = connClosed
	c.dropKept()
	c.s.clock.Set(c.timer, c.now()+lingerTime)
}

// fin handles the peer's fin: the peer sends no more data. If data that precedes the fin is missing, the
// connection waits for it, at most as long as the peer would resend it.
func (c *Conn) fin(t *wire.TRP) {
	if !c.inWindow(t.PSN) {
		return
	}
	if c.passive && !c.heard {
		c.heard = true // the peer has given up the connection: it was not established
	}
	if !c.acknowledged(t) {
		return
	}
	if e := &c.end; !e.finPending {
		e.finPending, e.finPSN, e.finUntil = true, t.PSN, c.now()+finWait
	}
	c.finIfWhole()
}

func (c *Conn) finIfWhole() {
	if !c.end.finPending || c.more || c.rnr.Waiting() && !c.ByNumber || !c.live() || c.end.finPSN.After(c.rel.Expected()) {
		return
	}
	c.endByFin()
}

func (c *Conn) endByFin() {
	c.end.reason = qp.CloseRemote
	c.finish()
	c.close()
}

// late answers a packet of a connection that has ended on this side.
func (c *Conn) late(t *wire.TRP) {
	switch {
	case t.Op == wire.OpFin && c.state == connFin:
		c.close()
	case t.Op == wire.OpFin && c.end.reason == qp.CloseRemote:
		c.answerFin()
	case t.Op == wire.OpFin:
	case c.state == connClosed && c.end.tries < finTries:
		c.end.tries++
		c.sendFin()
	}
}

// answerFin repeats our fin: a fin from the peer shows that ours was lost. It answers no more often than a
// peer repeats its fin. Otherwise a forged fin to each end would make both answer each other as fast as
// they can.
func (c *Conn) answerFin() {
	if c.now() >= c.end.answerFrom {
		c.end.answerFrom = c.now() + finEvery/2
		c.sendFin()
	}
}
