package engine

import (
	"urdma/urdmad/reliable"
	"urdma/wire"
)

// sendBudget bounds the packets one connection sends in a turn.
const sendBudget = 64

// transmit serves every queue pair in line once.
func (e *Engine) transmit() (n int) {
	for count := e.runq.len(); count > 0; count-- {
		qp := e.runq.take()
		c := qp.conn
		if c == nil || c.state != connOpen && c.state != connDraining {
			continue
		}
		if qp.sqHead != qp.sqTail && qp.wr(qp.sqHead).state == wrFailed {
			e.completeSends(qp)
			n++
			continue
		}
		if c.port == nil {
			n += c.sendLocal()
		} else {
			n += c.sendWire()
		}
	}
	return n
}

// sendWire sends what a connection may send now: lost segments, new segments,
// then an acknowledgement if none of them carried it.
func (c *Conn) sendWire() (n int) {
	if c.passive && !c.heard {
		return 0 // the peer has not acknowledged our accept
	}
	full := false
	for n < sendBudget {
		b := c.port.alloc()
		if b == nil {
			full = true
			break
		}
		if !c.sendSegment(b) {
			break
		}
		n++
	}
	if full || n == sendBudget {
		c.e.runq.add(c.qp)
	}
	if !full {
		n += c.acknowledge()
	}
	c.schedule()
	return n
}

// sendSegment sends one segment, if one may go.
func (c *Conn) sendSegment(b []byte) bool {
	e := c.e
	if psn, token, ok := c.rel.Retransmit(e.now); ok {
		c.sendData(b, psn, c.build(c.room(b), token))
		return true
	}
	if !c.responseReady() && !c.requestReady() || c.rel.CanSend(e.now) <= 0 {
		return false
	}
	token, ok := c.next()
	if !ok {
		return false
	}
	n := c.build(c.room(b), token)
	psn := c.rel.Send(e.now, n, token)
	c.sent(token, psn)
	c.sendData(b, psn, n)
	e.Stats.SegmentsSent++
	return true
}

// acknowledge sends what is due without a segment to ride on.
func (c *Conn) acknowledge() (n int) {
	if c.rel.ProbeDue(c.e.now) {
		n += c.sendBare(wire.OpData, wire.FlagAckRequested, nil)
	}
	switch c.rel.AckDue(c.e.now) {
	case reliable.AckPlain:
		n += c.sendBare(wire.OpData, 0, nil)
	case reliable.AckSack:
		n += c.sendSacks()
	}
	return n
}

func (c *Conn) sendSacks() (n int) {
	var space [wire.MaxSackRuns]wire.SackRun
	runs := c.rel.SackRuns(space[:0])
	if c.extended {
		return c.sendBare(wire.OpSack, 0, runs)
	}
	for _, r := range runs {
		n += c.sendPlainSack(r)
	}
	return n + c.sendBare(wire.OpData, 0, nil) // a plain SACK has no cumulative acknowledgement
}

// trpLen is the length of the connection's data headers.
func (c *Conn) trpLen() int {
	if c.extended {
		return wire.TRPExtLen
	}
	return wire.TRPLen
}

// room is where a frame's DDP segment goes.
func (c *Conn) room(b []byte) []byte { return b[wire.UDPHeaderLen+c.trpLen():] }

// trp is the header of the next packet: it carries the acknowledgement.
func (c *Conn) trp(op wire.TRPOp, psn wire.PSN, flags uint16) wire.TRP {
	ack, credits := c.rel.Header()
	if c.rnr.waiting && c.RNRRetry < rnrForever && ack.After(c.rnr.psn) {
		ack = c.rnr.psn // it may still be refused
	}
	if c.frozen && ack.After(c.ackFrozen) {
		ack = c.ackFrozen
	}
	return wire.TRP{PSN: psn, Ack: ack, Op: op, Credits: credits, Flags: flags, Cookie: c.peerCookie}
}

// sendData puts the headers in front of a segment of n bytes and queues the
// frame.
func (c *Conn) sendData(b []byte, psn wire.PSN, n int) {
	var flags uint16
	if c.rel.WantAR() {
		flags = wire.FlagAckRequested
	}
	t := c.trp(wire.OpData, psn, flags)
	c.wrap(b, &t, n)
}

// sendBare sends a packet without a segment: acknowledgement, probe, SACK, fin.
func (c *Conn) sendBare(op wire.TRPOp, flags uint16, runs []wire.SackRun) int {
	b := c.port.alloc()
	if b == nil {
		c.e.runq.add(c.qp)
		return 0
	}
	n := wire.PutSackRuns(c.room(b), runs)
	t := c.trp(op, c.rel.Next(), flags)
	c.wrap(b, &t, n)
	return 1
}

func (c *Conn) sendPlainSack(r wire.SackRun) int {
	b := c.port.alloc()
	if b == nil {
		return 0
	}
	t := wire.TRP{PSN: r.First, Ack: r.End, Op: wire.OpSack}
	c.wrap(b, &t, 0)
	return 1
}

// wrap completes a frame whose segment or body of n bytes is in place.
func (c *Conn) wrap(b []byte, t *wire.TRP, n int) {
	n += t.Put(b[wire.UDPHeaderLen:], c.extended)
	c.hdr.Put(b, n, c.port.nextIPID())
	n += wire.UDPHeaderLen
	if !c.port.info.TxUDPChecksum {
		wire.SetUDPChecksum(b[:n])
	}
	c.port.commit(n)
	c.Stats.TxPackets++
}

// sendFin sends a fin, and the Terminate in front of it if there is one.
func (c *Conn) sendFin() {
	if c.port == nil {
		return
	}
	c.sendTerminate()
	if c.port.alloc() != nil {
		c.sendBare(wire.OpFin, 0, nil)
	}
}

// sendTerminate sends the Terminate message, first or again: always with the
// same PSN, outside the window that flow control guards, because nothing
// follows it.
func (c *Conn) sendTerminate() {
	if c.terminate == nil {
		return
	}
	b := c.port.alloc()
	if b == nil {
		return
	}
	if !c.termSent {
		c.termSent = true
		c.termPSN = c.rel.Send(c.e.now, len(c.terminate), terminateToken)
	}
	copy(c.room(b), c.terminate)
	c.sendData(b, c.termPSN, len(c.terminate))
}

// ControlPacket is a request, accept or reject, or the fin of a connection that
// was never started here.
type ControlPacket struct {
	Dev       int
	MAC       wire.MAC // next hop
	Peer      wire.IPv4
	LocalPort uint16
	PeerPort  uint16
	TRP       wire.TRP
	Extended  bool            // the header is
	Connect   wire.TRPConnect // not with a fin
}

// SendControl sends a control packet; a full port loses it, as a network may.
func (e *Engine) SendControl(p *ControlPacket) {
	n := e.ports[p.Dev]
	b := n.alloc()
	if b == nil {
		return
	}
	var h wire.UDPHeader
	h.Init(wire.MAC(n.info.MAC), p.MAC, n.addr.IP(), p.Peer, p.LocalPort, p.PeerPort)
	at := p.TRP.Put(b[wire.UDPHeaderLen:], p.Extended)
	size := 0
	if p.TRP.Op.IsControl() {
		var err error
		if size, err = p.Connect.Put(b[wire.UDPHeaderLen+at:]); err != nil {
			e.log.Error("control packet not sent", "error", err)
			return
		}
	}
	h.Put(b, at+size, n.nextIPID())
	total := wire.UDPHeaderLen + at + size
	if !n.info.TxUDPChecksum {
		wire.SetUDPChecksum(b[:total])
	}
	n.commit(total)
}
