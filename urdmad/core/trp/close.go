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
	finWait    = 5 * finEvery / 2 // a fin waits so long for a gap in front of it to close
	drainTime  = clock.Second     // longest that Disconnect waits for posted work
	drainCheck = clock.Millisecond
	lingerTime = clock.Second // a closed connection keeps its port number
)

// ending is how far a connection's end has come.
type ending struct {
	reason     qp.CloseReason
	reported   bool // Manager.Closed was called
	tries      int
	drainUntil clock.Time
	finPending bool // a fin arrived before the data in front of it
	finPSN     wire.PSN
	finUntil   clock.Time // then it counts all the same: its sender repeats nothing
	answerFrom clock.Time // no earlier is a late fin answered
}

// Disconnect ends the connection in good order: work already posted goes out
// (for a second at most), then a fin.
func (c *Conn) Disconnect() {
	if c.state == connOpen && c.QP != nil {
		c.QP.Post() // its bell may not be answered yet; a send queue that is wrong ends the connection
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

// Failed is qp.Carrier's.
func (c *Conn) Failed() {
	if c.live() {
		c.end.reason = qp.CloseLocal
		c.finish()
	}
}

// Detach is qp.Carrier's.
func (c *Conn) Detach() {
	c.Failed()
	if c.QP != nil {
		c.port.remember(c)
		c.QP.Detach()
		c.QP = nil
	}
}

// cutPerTurn bounds the connections that end in a turn because their port is cut off.
const cutPerTurn = 64

// Forsake ends the connections from an address that is the port's no more, or from which it
// can send nothing, some in each turn, and returns how many there are.
func (p *Port) Forsake(local netip.Addr) (n int) {
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
				c.giveUp(qp.CloseMoved)
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

// die ends a connection whose peer is silent.
func (c *Conn) die() {
	c.s.log.Info("peer is silent, connection ends", "peer", c.Peer.String(), "qpn", c.QP.QPN)
	c.giveUp(qp.CloseDead)
}

// giveUp ends a connection whose peer can't be reached.
func (c *Conn) giveUp(why qp.CloseReason) {
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
		// Nothing shows that the peer is where its request said, so it gets one
		// fin (docs/WIRE.md chapter 3). If that is lost, its next packet draws
		// another, be it the probe of an idle connection.
		c.close()
		c.end.tries = 1
		c.s.clock.Set(c.timer, c.now()+c.s.cfg.DeathTimeout)
		return
	}
	c.s.clock.Set(c.timer, c.now()+finEvery)
}

// leaveQP flushes the queue pair, or leaves it as it is if it outlives the
// connection.
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

// sendFin sends a fin, and the Terminate in front of it if there is one.
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

// close waits for late packets before the port number is free again.
func (c *Conn) close() {
	c.state = connClosed
	c.dropKept()
	c.s.clock.Set(c.timer, c.now()+lingerTime)
}

// fin: the peer will send nothing more. Data in front of it that is still
// missing is waited for, within the peer's patience.
func (c *Conn) fin(t *wire.TRP) {
	if !c.inWindow(t.PSN) {
		return
	}
	if c.passive && !c.heard {
		c.heard = true // a peer that no longer wants the connection: not established
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

// late answers packets of a connection that has ended here.
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

// answerFin repeats our fin, which the peer's says was lost: no oftener than a
// peer repeats its own, for if someone forged a fin to each end both would
// answer the other's answers as fast as they can.
func (c *Conn) answerFin() {
	if c.now() >= c.end.answerFrom {
		c.end.answerFrom = c.now() + finEvery/2
		c.sendFin()
	}
}
