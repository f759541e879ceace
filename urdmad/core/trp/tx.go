package trp

import (
	"urdma/urdmad/core/netif"
	"urdma/urdmad/core/reliable"
	"urdma/wire"
)

// sendBudget bounds the packets that one connection sends in a turn if they don't leave in batches.
const sendBudget = 64

// budgetFor returns the budget for a path: where one send carries a batch of datagrams, sendBudget is
// rounded up to whole batches.
func budgetFor(path *netif.Path, segment int) int {
	n := max(1, path.Batch(segment+wire.TRPExtLen))
	return (sendBudget + n - 1) / n * n
}

// Transmit implements qp.Carrier. It delivers kept packets, then sends lost segments, new segments, and an
// acknowledgement if no segment carried it.
func (c *Conn) Transmit() (n int) {
	if !c.live() || c.passive && !c.heard {
		return 0 // ended, or the peer has not acknowledged our accept
	}
	if c.term.due(c) {
		c.endByTerminate()
		return 0
	}
	if c.more {
		if c.deliverMore(); !c.live() {
			return 0
		}
	}
	c.rel.GiveWay(c.port.lightSenders.other(c.Local.Port(), c.now()))
	full := false
	for n < c.budget {
		frame := c.port.If.Alloc()
		if frame == nil {
			full = true
			break
		}
		if !c.sendSegment(frame) {
			break
		}
		n++
	}
	if full || n == c.budget {
		c.ready()
	}
	if c.unwritten.Advanced() {
		c.rel.OnAckRequested(c.now())
	}
	if !full {
		n += c.acknowledge()
	}
	c.schedule()
	return n
}

// sendSegment sends one segment if the windows allow it.
func (c *Conn) sendSegment(frame []byte) bool {
	now := c.now()
	if psn, token, ok := c.rel.Retransmit(now); ok {
		n, ok := c.stream.Build(c.room(frame), token)
		if !ok {
			c.revoked(token)
			return false
		}
		c.path.Again()
		c.SentAgain(uint32(psn))
		c.sendData(frame, psn, n)
		return true
	}
	if !c.stream.Ready() || c.rel.CanSend(now) <= 0 {
		return false
	}
	token := c.stream.Next()
	n, ok := c.stream.Build(c.room(frame), token)
	if !ok {
		c.revoked(token)
		return false
	}
	alone := c.rel.Acked() == c.rel.Next()
	psn := c.rel.Send(now, n, token)
	c.marks.sent++
	c.stream.Sent(token, c.marks.sent)
	if alone && !c.stream.More() {
		c.single.sent(&c.port.lightSenders, c.Local.Port(), now)
	}
	c.sendData(frame, psn, n)
	return true
}

// acknowledge sends an acknowledgement or SACK that is due and that no segment carried.
func (c *Conn) acknowledge() (n int) {
	if !c.live() {
		return 0
	}
	if c.rel.ProbeDue(c.now()) {
		n += c.sendBare(wire.OpData, wire.FlagAckRequested, nil)
	}
	switch c.rel.AckDue(c.now()) {
	case reliable.AckPlain:
		n += c.sendBare(wire.OpData, 0, nil)
	case reliable.AckSack:
		n += c.sendSacks()
	}
	return n
}

func (c *Conn) sendSacks() (n int) {
	var space [wire.MaxSackRuns]wire.SackRun
	return c.sendBare(wire.OpSack, 0, c.rel.SackRuns(space[:0]))
}

// room returns the part of a frame for the DDP segment.
func (r *remote) room(frame []byte) []byte {
	return r.path.Payload(frame)[wire.TRPExtLen:]
}

// header fills in the TRP header of the next packet, with the current acknowledgement.
func (c *Conn) header(t *wire.TRP, op wire.TRPOp, psn wire.PSN, flags uint16) {
	ack, credits := c.rel.Header()
	if c.rnr.Waiting() {
		credits = c.rnr.creditsToSend(credits, c.ByNumber)
		if at := wire.PSN(c.rnr.Message()); ack.After(at) {
			ack = at // the segment may still be refused, and a Write after it is not placed
		}
	}
	if first, ok := c.unwritten.First(); ok && ack.After(wire.PSN(first)) {
		ack = wire.PSN(first)
	}
	if c.term.frozen && ack.After(c.term.frozenAt) {
		ack = c.term.frozenAt
	}
	t.PSN, t.Ack, t.Op, t.Credits, t.Flags, t.Cookie = psn, ack, op, credits, flags, c.peerCookie
}

// sendData puts the headers before a segment of n bytes and queues the frame.
func (c *Conn) sendData(frame []byte, psn wire.PSN, n int) {
	var flags uint16
	if c.rel.WantAR(c.stream.More()) {
		flags = wire.FlagAckRequested
	}
	var t wire.TRP
	c.header(&t, wire.OpData, psn, flags)
	c.send(frame, &t, n)
}

// sendBare sends a packet without a segment: acknowledgement, probe, SACK, fin.
func (c *Conn) sendBare(op wire.TRPOp, flags uint16, runs []wire.SackRun) int {
	frame := c.port.If.Alloc()
	if frame == nil {
		c.ready()
		return 0
	}
	n := wire.PutSackRuns(c.room(frame), runs)
	var t wire.TRP
	c.header(&t, op, c.rel.Next(), flags)
	c.send(frame, &t, n)
	return 1
}

// send completes and queues a frame whose segment or body of n bytes is in place.
func (r *remote) send(frame []byte, t *wire.TRP, n int) {
	n += t.Put(r.path.Payload(frame))
	r.path.Send(frame, n)
	r.Stats.TxPackets++
}
