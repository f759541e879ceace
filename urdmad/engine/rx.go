package engine

import (
	"urdma/dpdk/port"
	"urdma/urdmad/reliable"
	"urdma/wire"
)

// receive takes what a port has, a few bursts at most.
func (e *Engine) receive(n *netPort) (total int) {
	if !n.info.Wire {
		return 0
	}
	for range rxBursts {
		if n.rxAt == n.rxHave { // else a fault in a client's memory cut the last burst short
			n.rxAt, n.rxHave = 0, n.queue.Rx(n.rx[:])
		}
		got := n.rxHave
		for n.rxAt < n.rxHave {
			i := n.rxAt
			n.rxAt++
			e.take(n, i)
		}
		total += got
		if got < len(n.rx) {
			break
		}
	}
	return total
}

// take handles received packet i and gives it back unless it is kept, also when
// handling it ends in a fault.
func (e *Engine) take(n *netPort, i int) {
	kept := false
	if len(e.taps) > 0 {
		e.tapReceived(n, &n.rx[i])
	}
	defer func() {
		if len(e.taps) > 0 {
			e.tapHandled()
		}
		if !kept {
			n.queue.Free(n.rx[i : i+1])
		}
	}()
	kept = e.frame(n, &n.rx[i])
}

// frame handles one frame and reports whether it keeps the packet.
func (e *Engine) frame(n *netPort, p *port.Packet) (kept bool) {
	head := p.Data[:min(len(p.Data), wire.MaxHeaderLen)]
	if n.info.SharedRx {
		head = n.head[:copy(n.head[:], head)] // the sender can still change its own copy
	}
	var f wire.Frame
	if err := f.Parse(head, len(p.Data)); err != nil {
		e.badFrame(err.Error())
		return false
	}
	switch {
	case f.Type == wire.EtherTypeARP:
		e.arp(n, head[f.PayloadOff:])
	case f.Type != wire.EtherTypeIPv4 || f.DstIP != n.addr.IP():
	case !e.checksumsRight(n, &f, head, p):
		e.badFrame("checksum wrong")
	case f.Proto == wire.ProtoUDP:
		return e.udp(n, &f, head, p)
	case f.Proto == wire.ProtoICMP:
		e.icmp(n, &f, p)
	}
	return false
}

// checksumsRight verifies what the port has not.
func (e *Engine) checksumsRight(n *netPort, f *wire.Frame, head []byte, p *port.Packet) bool {
	if p.Flags&(port.RxIPv4Bad|port.RxUDPBad) != 0 {
		return false
	}
	if !p.Flags.Has(port.RxIPv4Good) && !wire.VerifyIPv4Checksum(head[f.IPHeaderOff:f.IPHeaderOff+f.IPHeaderLen]) {
		return false
	}
	if f.Proto != wire.ProtoUDP || f.UDPChecksum == 0 || p.Flags.Has(port.RxUDPGood) {
		return true
	}
	return wire.VerifyUDPChecksum(f, p.Data[f.PayloadOff-wire.UDPLen:f.PayloadOff+f.PayloadLen])
}

func (e *Engine) arp(n *netPort, b []byte) {
	var a wire.ARP
	if _, err := a.Parse(b); err != nil {
		e.badFrame(err.Error())
		return
	}
	n.sendARP(n.arp.Packet(int64(e.now), &a))
}

// icmp answers echo requests; everything else, errors included, is ignored: a
// kernel that holds the same address sends errors for our ports.
func (e *Engine) icmp(n *netPort, f *wire.Frame, p *port.Packet) {
	b := n.alloc()
	if b == nil || len(p.Data) > len(b) {
		return
	}
	size := copy(b, p.Data)
	var g wire.Frame
	if g.Parse(b[:size], size) != nil || wire.EchoReply(&g, b[:size], wire.MAC(n.info.MAC)) != nil {
		return
	}
	n.commit(size)
}

// udp hands a datagram to its connection or to the connection manager.
func (e *Engine) udp(n *netPort, f *wire.Frame, head []byte, p *port.Packet) (kept bool) {
	c := n.conns[f.DstPort]
	if c == nil || c.state == connOpening || isControl(head, f) {
		e.control(n, f, p)
		return false
	}
	if c.PeerIP != f.SrcIP || c.PeerPort != f.SrcPort {
		e.stray("the connection has another peer")
		return false
	}
	return c.packet(f, head, p)
}

// isControl reports a request, accept or reject, without further checks.
func isControl(head []byte, f *wire.Frame) bool {
	at := f.PayloadOff + 8
	return f.PayloadLen >= wire.TRPLen && wire.TRPOp(head[at]>>4).IsControl()
}

func (e *Engine) control(n *netPort, f *wire.Frame, p *port.Packet) {
	body := append([]byte(nil), p.Data[f.PayloadOff:f.PayloadOff+f.PayloadLen]...)
	var t wire.TRP
	at, err := t.Parse(body, false)
	if err != nil {
		e.badFrame(err.Error())
		return
	}
	if !t.Op.IsControl() {
		e.Stats.NoConnection++
		e.note = "dropped: no connection has this port number"
		return
	}
	outer := *f // the handler may keep a pointer; f stays on the caller's stack
	e.handler.Packet(n.dev, &outer, &t, body[at:])
}

// packet handles a TRP packet of an established connection.
func (c *Conn) packet(f *wire.Frame, head []byte, p *port.Packet) (kept bool) {
	var t wire.TRP
	at, err := t.Parse(head[f.PayloadOff:min(len(head), f.PayloadOff+f.PayloadLen)], c.extended)
	if err != nil {
		c.e.badFrame(err.Error())
		return false
	}
	if c.extended && t.Cookie != c.LocalCookie {
		c.e.stray("cookie is not ours")
		return false
	}
	c.Stats.RxPackets++
	if c.state == connFin || c.state == connClosed {
		c.late(&t)
		return false
	}
	seg := segment{
		head: head[f.PayloadOff+at : min(len(head), f.PayloadOff+f.PayloadLen)],
		data: p.Data[f.PayloadOff+at : f.PayloadOff+f.PayloadLen],
	}
	switch t.Op {
	case wire.OpData:
		kept = c.data(&t, &seg, p)
	case wire.OpSack:
		c.sack(&t, seg.data)
	case wire.OpFin:
		c.fin(&t)
	}
	if c.state == connOpen || c.state == connDraining {
		c.e.runq.add(c.qp)
		c.schedule()
	}
	return kept
}

// hear notes the first packet of the peer, which establishes a passive side.
func (c *Conn) hear() {
	if !c.heard {
		c.heard = true
		if c.passive {
			c.e.handler.Established(c)
		}
	}
}

// segment is a DDP segment: its head in private memory, and all of it.
type segment struct {
	head []byte
	data []byte
}

// data takes a data packet: the acknowledgement it carries, then its segment.
// A Terminate is looked at before the acknowledgement, which may cover the very
// segment that the peer refused.
func (c *Conn) data(t *wire.TRP, s *segment, p *port.Packet) (kept bool) {
	if isTerminate(s.head) { // also out of order: nothing after it counts
		if c.inWindow(t.PSN) {
			c.terminated(t, s)
		}
		return false
	}
	if !c.acknowledged(t) {
		return false
	}
	ar := t.Flags&wire.FlagAckRequested != 0
	if len(s.data) == 0 {
		if ar {
			c.rel.OnAckRequested(c.e.now)
		}
		return false
	}
	switch c.rel.OnData(c.e.now, t.PSN, ar) {
	case reliable.Deliver:
		if kept = c.rnr.waiting || !c.deliver(t.PSN, s); kept {
			c.stash(t.PSN, p)
		}
		c.deliverHeld()
		return kept
	case reliable.Hold:
		if c.port.immediate {
			c.placeEarly(s)
		}
		return c.hold(t.PSN, p)
	case reliable.Duplicate:
		c.Stats.Duplicates++
		c.e.note = "duplicate"
	case reliable.Outside:
		c.Stats.OutsideWindow++
		c.e.note = "dropped: PSN is outside the window"
	}
	return false
}

// hold keeps the packet of a segment that came out of order until the gap
// closes. A port that has no memory left to retain it in lets us keep it where
// it is.
func (c *Conn) hold(psn wire.PSN, p *port.Packet) bool {
	c.Stats.Held++
	c.e.note = "held: out of order"
	i := uint32(psn) & c.heldMask
	if c.held[i].Data != nil {
		c.port.queue.Free(c.held[i : i+1])
	}
	c.held[i] = *p
	if err := c.port.queue.Retain(&c.held[i]); err != nil {
		c.e.Stats.RetainFailed++
	}
	return true
}

// deliverHeld takes up what was held, as far as it is in order now; behind a
// message that waits for its receive it waits with it.
func (c *Conn) deliverHeld() {
	for c.state == connOpen || c.state == connDraining {
		psn, ok := c.rel.NextHeld()
		if !ok {
			break
		}
		c.deliverSlot(psn)
	}
	c.finIfWhole()
}

// deliverSlot delivers the held packet of a PSN and gives it back, also when
// delivering it ends in a fault; a message that has to wait keeps it.
func (c *Conn) deliverSlot(psn wire.PSN) {
	slot := &c.held[uint32(psn)&c.heldMask]
	p := *slot
	*slot = port.Packet{}
	waits := false
	defer func() {
		if !waits {
			c.freeing[0] = p
			c.port.queue.Free(c.freeing[:])
		}
	}()
	if waits = c.rnr.waiting || !c.deliverRetained(psn, &p); waits {
		c.rnr.queue = append(c.rnr.queue, stashed{psn, p}) // retained already
	}
}

// deliverRetained parses a retained frame's outer headers again; they were
// checked when it arrived.
func (c *Conn) deliverRetained(psn wire.PSN, p *port.Packet) bool {
	var f wire.Frame
	head := p.Data[:min(len(p.Data), wire.MaxHeaderLen)]
	var private [wire.MaxHeaderLen]byte
	head = private[:copy(private[:], head)]
	if f.Parse(head, len(p.Data)) != nil {
		return true
	}
	trp := wire.TRPLen
	if c.extended {
		trp = wire.TRPExtLen
	}
	from, to := f.PayloadOff+trp, f.PayloadOff+f.PayloadLen
	if from > to {
		return true
	}
	return c.deliver(psn, &segment{head: head[min(from, len(head)):min(len(head), to)], data: p.Data[from:to]})
}

func (c *Conn) sack(t *wire.TRP, body []byte) {
	var runs [wire.MaxSackRuns]wire.SackRun
	ack, n := t.Ack, 0
	if c.extended {
		var err error
		var private [wire.MaxSackRuns * 8]byte
		if n, err = wire.ParseSackRuns(runs[:], private[:copy(private[:], body)]); err != nil {
			c.e.badFrame(err.Error())
			return
		}
	} else {
		runs[0], n = wire.SackRun{First: t.PSN, End: t.Ack}, 1
		ack = c.rel.Acked()
	}
	if err := c.rel.OnSack(c.e.now, ack, t.Credits, runs[:n]); err != nil {
		c.e.badAck()
		return
	}
	c.hear()
	c.e.completeSends(c.qp)
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
	if !c.finPending {
		c.finPending, c.finPSN, c.finUntil = true, t.PSN, c.e.now+finWait
	}
	c.finIfWhole()
}

// acknowledged takes the acknowledgement of a packet and completes what it
// covers. It reports whether the packet can be true and the connection goes on.
func (c *Conn) acknowledged(t *wire.TRP) bool {
	if err := c.rel.OnAck(c.e.now, t.Ack, t.Credits); err != nil {
		c.e.badAck()
		return false
	}
	c.hear()
	c.e.completeSends(c.qp)
	return c.state == connOpen || c.state == connDraining
}

// inWindow reports whether psn is one that the peer may use now: a packet that
// ends the connection counts only then (docs/WIRE.md chapter 4).
func (c *Conn) inWindow(psn wire.PSN) bool {
	ahead := psn.Sub(c.rel.Expected())
	if ahead < 0 || ahead > int32(len(c.held)) {
		c.e.stray("PSN is outside the window")
		return false
	}
	return true
}

func (c *Conn) finIfWhole() {
	if !c.finPending || c.rnr.waiting || (c.state != connOpen && c.state != connDraining) {
		return
	}
	if next := c.rel.Expected(); c.finPSN.After(next) {
		return
	}
	c.endByFin()
}

func (c *Conn) endByFin() {
	c.closeReason = CloseRemote
	c.finish()
	c.close()
}

// late answers packets of a connection that has ended here.
func (c *Conn) late(t *wire.TRP) {
	switch {
	case t.Op == wire.OpFin && c.state == connFin:
		c.close()
	case t.Op == wire.OpFin && c.closeReason == CloseRemote:
		c.sendFin() // ours was lost
	case t.Op == wire.OpFin:
	case c.state == connClosed && c.tries < finTries:
		c.tries++
		c.sendFin()
	}
}
