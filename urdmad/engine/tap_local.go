package engine

import (
	"urdma/verbs/abi"
	"urdma/wire"
)

// This file makes up the frames that a wire would carry for a connection within
// this engine (local.go), for taps: handshake, every message's segments, the
// Terminate and the fins. There is no loss, so there are no acknowledgements;
// each frame acknowledges all that the other side sent. Sequence numbers begin
// at 0 and cookies are 0.

// shown is what a local connection has shown of itself.
type shown struct {
	next  wire.PSN // of this side
	heard wire.PSN // the other side's next
}

// Tapped reports whether anybody looks at frames.
func (e *Engine) Tapped() bool { return len(e.taps) > 0 }

// LocalControl is a control packet between two ids of this engine.
type LocalControl struct {
	Dev              int
	From, To         wire.IPv4
	FromPort, ToPort uint16
	Op               wire.TRPOp
	Connect          wire.TRPConnect
}

// ShowControl shows a control packet; qp, if there is one, is what its sender
// wants to connect.
func (e *Engine) ShowControl(p *LocalControl, qp *QP) {
	n := e.ports[p.Dev]
	if qp != nil {
		p.Connect.HasExt = true
		p.Connect.Ext = wire.TRPExtension{QPN: wire.QPN(qp.QPN), MaxSegment: uint16(n.maxSegment()), RecvWindow: uint16(e.cfg.Window)}
	}
	b := e.scratch(n)
	t := wire.TRP{Op: p.Op}
	at := wire.UDPHeaderLen + t.Put(b[wire.UDPHeaderLen:], false)
	size, err := p.Connect.Put(b[at:])
	if err != nil {
		return // nor would it have been sent
	}
	var h wire.UDPHeader
	h.Init(wire.MAC(n.info.MAC), wire.MAC(n.info.MAC), p.From, p.To, p.FromPort, p.ToPort)
	h.Put(b, at+size-wire.UDPHeaderLen, n.nextIPID())
	e.show(Sight{Dev: p.Dev, Local: true, Frame: b[:at+size], OurIP: p.From, PeerIP: p.To, OurPort: p.FromPort, PeerPort: p.ToPort})
}

// scratch is room for one frame of a port.
func (e *Engine) scratch(n *netPort) []byte {
	if size := wire.EthernetLen + n.info.MTU; len(e.madeUp) < size {
		e.madeUp = make([]byte, size)
	}
	return e.madeUp
}

// showRequest shows the segments of a Send or Write, or a Read's request.
func (c *Conn) showRequest(wr *sendWR) {
	if !c.e.Tapped() {
		return
	}
	limit := c.payloadOf(wr)
	for off := uint32(0); ; off += limit {
		b := c.e.scratch(c.e.ports[c.Dev])
		c.showSegment(wire.OpData, b, c.build(c.room(b), makeToken(c.qp.sqNext&c.qp.sqMask, off)))
		if limit == 0 || wr.length-off <= limit {
			return
		}
	}
}

// payloadOf is how much of a work request each segment carries; 0 for a Read,
// whose request is one segment.
func (c *Conn) payloadOf(wr *sendWR) uint32 {
	switch wr.op {
	case abi.WRRDMAWrite:
		return c.payloadMax[1]
	case abi.WRRDMARead:
		return 0
	}
	return c.payloadMax[0]
}

// showResponse shows the answer to a Read; src is what it read.
func (c *Conn) showResponse(wr *sendWR, src []byte) {
	if !c.e.Tapped() {
		return
	}
	peer := c.peer
	rr := readResponse{src: src, length: wr.length, sinkSTag: wr.sink}
	for off := uint32(0); ; off += peer.payloadMax[1] {
		b := c.e.scratch(c.e.ports[c.Dev])
		peer.showSegment(wire.OpData, b, peer.buildResponse(peer.room(b), &rr, off))
		if wr.length-off <= peer.payloadMax[1] {
			return
		}
	}
}

// showRefusal shows the first segment of what was refused, and the Terminate.
func (c *Conn) showRefusal(wr *sendWR, code wire.TermCode) {
	if !c.e.Tapped() || c.peer == nil {
		return
	}
	b := c.e.scratch(c.e.ports[c.Dev])
	room := c.room(b)
	n := c.build(room, makeToken(c.qp.sqNext&c.qp.sqMask, 0))
	c.showSegment(wire.OpData, b, n)
	var d wire.DDP
	at, err := d.Parse(room[:n])
	if err != nil {
		return
	}
	message := terminateMessage(code, &segment{head: room[:n], data: room[:n]}, at, d.Op)
	peer := c.peer
	peer.showSegment(wire.OpData, b, copy(peer.room(b), message))
}

// showFin shows the end of this side.
func (c *Conn) showFin() {
	if c.e.Tapped() {
		c.showSegment(wire.OpFin, c.e.scratch(c.e.ports[c.Dev]), 0)
	}
}

// showSegment completes a frame whose segment of n bytes is in place, and shows
// it.
func (c *Conn) showSegment(op wire.TRPOp, b []byte, n int) {
	port := c.e.ports[c.Dev]
	t := wire.TRP{Op: op, PSN: c.shown.next, Ack: c.shown.heard, Credits: uint16(min(c.e.cfg.Window, 4095))}
	if n > 0 {
		c.shown.next = c.shown.next.Add(1)
	}
	if c.peer != nil {
		c.peer.shown.heard = c.shown.next
	}
	n += t.Put(b[wire.UDPHeaderLen:], true)
	var h wire.UDPHeader
	h.Init(wire.MAC(port.info.MAC), wire.MAC(port.info.MAC), c.LocalIP, c.PeerIP, c.LocalPort, c.PeerPort)
	h.Put(b, n, port.nextIPID())
	c.e.show(Sight{Dev: c.Dev, Local: true, Frame: b[:wire.UDPHeaderLen+n], Conn: c,
		OurIP: c.LocalIP, PeerIP: c.PeerIP, OurPort: c.LocalPort, PeerPort: c.PeerPort})
}
