package trp

import (
	"urdma/urdmad/core/netif"
	"urdma/urdmad/core/rdmap"
	"urdma/urdmad/core/reliable"
	"urdma/wire"
)

// packet handles a TRP packet of an open connection.
func (c *Conn) packet(d *netif.Datagram) {
	var t wire.TRP
	at, err := t.Parse(d.Head)
	if err != nil {
		c.port.If.Drop(netif.Drop(err.Error()))
		return
	}
	if t.Cookie != c.LocalCookie {
		c.s.Stats.StrayAddress++
		return
	}
	if c.path.Moved(d) {
		if !mayFollow(c, &t) {
			c.s.Stats.StrayAddress++
			return
		}
		c.path.Move(d)
	}
	c.Stats.RxPackets++
	if !c.live() {
		c.late(&t)
		return
	}
	var seg rdmap.Segment
	seg.Head, seg.Data = d.Head[at:], d.Data[at:]
	switch t.Op {
	case wire.OpData:
		c.data(&t, &seg, d)
	case wire.OpSack:
		c.sack(&t, seg.Data)
	case wire.OpFin:
		c.fin(&t)
	}
	if c.live() {
		c.ready() // the timer is set when this turn sends
	}
}

// mayFollow reports whether a packet from another address or port is accepted from the peer: a network
// address translator may have changed its mapping (docs/WIRE.md chapter 11). The caller has checked the
// cookie, which tells the peer from a host that forges its address.
func mayFollow(c *Conn, t *wire.TRP) bool {
	ahead, window := int(t.PSN.Sub(c.rel.Expected())), c.held.window
	return ahead >= -window && ahead <= window+2 && c.rel.Plausible(t.Ack)
}

// data handles a data packet: first its acknowledgement, then its segment. A Terminate is processed before
// the acknowledgement, which may cover the very segment that the peer refused.
func (c *Conn) data(t *wire.TRP, seg *rdmap.Segment, d *netif.Datagram) {
	if wire.IsTerminate(seg.Head) { // also out of order: nothing after it is accepted
		if c.inWindow(t.PSN) {
			c.terminated(t, seg)
		}
		return
	}
	if !c.acknowledged(t) {
		return
	}
	ackRequested := t.Flags&wire.FlagAckRequested != 0
	if len(seg.Data) == 0 {
		if ackRequested {
			c.rel.OnAckRequested(c.now())
		}
		return
	}
	// A segment that can't be kept is dropped before it is accepted, so that the peer resends it.
	verdict := c.rel.Judge(t.PSN)
	if verdict == reliable.Deliver && !c.takeInOrder(t.PSN, seg, d) || verdict == reliable.Hold && !c.hold(t.PSN, seg, d) {
		if c.rnr.Waiting() { // a peer that resends the waiting segment is told again that it waits
			c.rel.OnAckRequested(c.now())
		}
		return
	}
	c.rel.OnData(c.now(), t.PSN, ackRequested, verdict)
	switch verdict {
	case reliable.Deliver:
		c.deliverHeld()
	case reliable.Duplicate:
		c.Stats.Duplicates++
	case reliable.Outside:
		c.Stats.OutsideWindow++
	}
}

// acknowledged processes a packet's acknowledgement and completes the work requests that it covers. It
// returns false if the acknowledgement is invalid or the connection has ended.
func (c *Conn) acknowledged(t *wire.TRP) bool {
	if err := c.rel.OnAck(c.now(), t.Ack, t.Credits); err != nil {
		c.s.Stats.BadAck++
		return false
	}
	return c.progress(t.Ack, t.Credits)
}

// progress acts on an acknowledgement that package reliable has processed. It reports whether the
// connection is still open.
func (c *Conn) progress(ack wire.PSN, credits uint32) bool {
	if !c.heard {
		c.hear()
	}
	if c.rel.Acked() != c.marks.ackedPSN {
		c.advance()
	}
	if c.ByNumber && c.live() {
		c.notePeerNotReady(ack, credits)
	}
	return c.live()
}

// advance tells the stream how many segments the peer has acknowledged.
func (c *Conn) advance() {
	una := c.rel.Acked()
	c.marks.acked += uint64(una.Sub(c.marks.ackedPSN))
	c.marks.ackedPSN = una
	c.stream.Acked(c.marks.acked)
	if c.state == connDraining && c.stream.Drained() {
		c.s.clock.Hasten(c.timer, c.now())
	}
}

// hear records the peer's first packet, which establishes the passive side.
func (c *Conn) hear() {
	c.heard = true
	if c.passive {
		c.s.handler.Established(&c.Connection)
	}
}

func (c *Conn) sack(t *wire.TRP, body []byte) {
	var runs [wire.MaxSackRuns]wire.SackRun
	var private [wire.MaxSackRuns * 8]byte
	n, err := wire.ParseSackRuns(runs[:], private[:copy(private[:], body)])
	if err != nil {
		c.port.If.Drop(netif.Drop(err.Error()))
		return
	}
	if err := c.rel.OnSack(c.now(), t.Ack, t.Credits, runs[:n]); err != nil {
		c.s.Stats.BadAck++
		return
	}
	c.progress(t.Ack, t.Credits)
}

// inWindow reports whether the peer may use psn now: a packet that ends the connection is accepted only
// then (docs/WIRE.md chapter 4).
func (c *Conn) inWindow(psn wire.PSN) bool {
	ahead := psn.Sub(c.rel.Expected())
	if ahead < 0 || int(ahead) > c.held.window {
		c.s.Stats.StrayAddress++
		return false
	}
	return true
}
