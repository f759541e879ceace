package datagram

import (
	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
	"urdma/wire"
)

// Transmit implements qp.Carrier.
func (c *UC) Transmit() int { return c.transmit(c.send, c.Failed) }

// send sends one packet of the work request at index i, or the whole message within this urdmad.
func (c *UC) send(i uint32, wr *qp.SendWR) outcome {
	if at := c.s.PortAt(c.Peer.Addr()); at != nil && !c.s.table.Elsewhere(uint32(c.peerQPN)) {
		return c.sendLocal(at, i, wr)
	}
	w := c.port.way(c.Peer.Addr())
	switch {
	case w == nil:
		c.moved(wr.Length - wr.Offset())
		return gone
	case !w.open:
		c.later() // the next hop's Ethernet address is being resolved
		return later
	}
	frame := c.port.If.Alloc()
	if frame == nil {
		c.s.table.Ready(c.QP)
		return later
	}
	h := c.Header(wr)
	n := wr.Run(wr.Offset(), c.port.form.PartLen(c.QP, h.Write, c.port.If.MaxDatagram()))
	h.Last = wr.Offset()+n == wr.Length
	b := w.path.Payload(frame)
	at, length := c.port.form.PutPart(b, h, n, wr.Length)
	if !c.QP.Gather(b[at:at+int(n)], wr, wr.Offset()) {
		return revoked
	}
	c.psn = c.psn.Add(1)
	c.port.send(w, c.flow, h.Dst, frame, length, uint8(c.QP.Attr.TrafficClass))
	c.moved(n)
	return gone
}

// Header returns the header of the next packet of a work request, without Last.
func (c *UC) Header(wr *qp.SendWR) Part {
	return Part{PSN: c.psn, Dst: c.peerQPN, Src: wire.QPN(c.QP.QPN), First: wr.Offset() == 0,
		Write: wr.Op.RemoteAccess != 0, STag: wire.STag(wr.RKey), TO: wr.RemoteAddr() + uint64(wr.Offset()),
		HasImmediate: wr.Op.Immediate, Immediate: wr.Immediate, Solicited: wr.Flags&abi.SendSolicited != 0}
}

// sendLocal carries a message to a queue pair at one of our ports, once it has a receive if it needs one.
func (c *UC) sendLocal(at *Port, i uint32, wr *qp.SendWR) outcome {
	h := c.Header(wr)
	to := c.s.ucs[h.Dst]
	if to == nil || !to.takes(at, c.port.If.IP(), h.Src) {
		c.s.Stats.NoQueuePair++
		c.moved(wr.Length - wr.Offset())
		return gone
	}
	if wr.Offset() == 0 && wr.Op.TakesReceive && to.QP.RQ.Posted() == 0 && c.mayWait(&to.sender) {
		return later
	}
	return c.copyTo(to, i, wr, &h)
}

// copyTo copies the accessible part of the source in pieces, as packets would carry it.
func (c *UC) copyTo(to *UC, i uint32, wr *qp.SendWR, h *Part) outcome {
	for {
		b, ok := c.QP.Part(i, wr.Offset(), localPiece)
		switch {
		case !ok:
			return revoked
		case len(b) == 0 && wr.Offset() < wr.Length:
			return later // being copied to staging memory
		}
		if to.QP.Client.Backlogged() && c.mayWait(&to.sender) {
			return later
		}
		c.wait.until = 0
		h.First, h.Last, h.TO = wr.Offset() == 0, wr.Offset()+uint32(len(b)) == wr.Length, wr.RemoteAddr()+uint64(wr.Offset())
		h.PSN = to.in.next
		to.Take(h, b)
		if !c.live() {
			return gone // it overran one of our completion queues: the work request has ended
		}
		c.moved(uint32(len(b)))
		if !h.Last { // else its completion frees the rest
			wr.Consumed()
		}
		if h.Last || !to.live() {
			break
		}
	}
	c.s.Stats.Local++
	if wr.State != qp.SendSent {
		c.moved(wr.Length - wr.Offset()) // the receiver has gone
	}
	return gone
}

// localPiece is the length copied between checks that both queue pairs still exist.
const localPiece = 256 << 10
