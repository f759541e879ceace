package datagram

import (
	"net/netip"

	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
	"urdma/wire"
)

// Transmit implements qp.Carrier.
func (p *Pair) Transmit() int { return p.transmit(p.sendNext, p.Failed) }

// sendNext sends the whole message of the work request at index i.
func (p *Pair) sendNext(i uint32, wr *qp.SendWR) outcome {
	out := p.send(i, wr)
	if out == gone {
		p.moved(wr.Length)
	}
	return out
}

// send sends the message of the work request at index i.
func (p *Pair) send(i uint32, wr *qp.SendWR) outcome {
	h, dst := p.Header(wr)
	if dst.IsMulticast() {
		return p.sendGroup(dst, i, wr, &h)
	}
	if at := p.s.PortAt(dst); at != nil && !p.s.table.Elsewhere(uint32(h.Dst)) {
		return p.sendLocal(at, i, wr, &h)
	}
	return p.sendWire(dst, i, wr, &h)
}

// Header returns the header of a work request's message, without the PSN, and the address or group to which
// it goes.
func (p *Pair) Header(wr *qp.SendWR) (h Message, dst netip.Addr) {
	dst, qpn, qkey := wr.Destination()
	if qkey&qp.ControlledQKey != 0 {
		qkey = p.QP.Attr.QKey
	}
	h = Message{Dst: wire.QPN(qpn & uint32(wire.MulticastQPN)), Src: wire.QPN(p.QP.QPN), QKey: qkey,
		Solicited: wr.Flags&abi.SendSolicited != 0}
	if wr.Op.Immediate {
		h.HasImmediate, h.Immediate = true, wr.Immediate
	}
	if dst.IsMulticast() {
		h.Dst, dst = wire.MulticastQPN, p.port.groupOf(dst)
	}
	return h, dst
}

// sendWire sends a message out of the queue pair's port.
func (p *Pair) sendWire(dst netip.Addr, i uint32, wr *qp.SendWR, h *Message) outcome {
	w := p.port.way(dst)
	switch {
	case w == nil:
		return gone
	case h.Dst <= wire.GeneralQPN && h.QKey&qp.ControlledQKey == 0: // management datagrams need a privileged Q_Key
		p.s.Stats.NoQueuePair++
		return gone
	}
	if !w.open {
		return p.sendWhenKnown(w, wr, h)
	}
	frame := p.port.If.Alloc()
	if frame == nil {
		p.s.table.Ready(p.QP) // the port is full: the next turn retries
		return later
	}
	if !p.build(w.path.Payload(frame), wr, h) {
		return revoked
	}
	p.port.send(w, p.flow, h.Dst, frame, p.port.form.Len(*h, wr.Length), uint8(wr.RKey))
	return gone
}

// build writes a packet with header and message. It returns false if the message's memory was deregistered.
func (p *Pair) build(b []byte, wr *qp.SendWR, h *Message) bool {
	h.PSN = p.psn
	at := p.port.form.Put(b, *h, wr.Length)
	if !p.QP.Gather(b[at:at+int(wr.Length)], wr, 0) {
		return false
	}
	p.psn = p.psn.Add(1)
	return true
}
