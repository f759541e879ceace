package datagram

import (
	"net/netip"

	"urdma/urdmad/core/netif"
	"urdma/urdmad/core/qp"
	"urdma/wire"
)

// Arrived delivers a message from the wire, which has a traffic class, to its destination queue pairs of
// type UD. It returns false if it drops the message.
func (p *Port) Arrived(d *netif.Datagram, m Message, class uint8, data []byte) bool {
	s := p.s
	s.Stats.Received++
	a := arrival{Message: m, src: d.Src.Addr(), dst: d.Dst.Addr(), class: class, length: len(data)}
	if a.dst.IsMulticast() {
		return s.arrivedGroup(p, &a, data)
	}
	to := s.destination(p, &m)
	if to == nil {
		return false
	}
	s.table.Serving = to.QP
	v := to.begin(&a)
	if v.Is == qp.Done {
		v = to.place(data)
	}
	if v.Is != qp.Done {
		to.dropped(v)
		return false
	}
	to.end(&a)
	return true
}

// destination returns a message's destination queue pair, nil if there is none or if its Q_Key is
// different, which is counted.
func (s *Stack) destination(p *Port, h *Message) *Pair {
	to := s.pairs[h.Dst]
	switch {
	case to == nil || to.port != p:
		s.Stats.NoQueuePair++
		return nil
	case to.QP.Attr.QKey != h.QKey:
		s.Stats.WrongQKey++
		return nil
	}
	return to
}

// arrival is a received message.
type arrival struct {
	Message
	src, dst netip.Addr
	class    uint8 // traffic class, or TOS
	length   int   // bytes
	from     *Pair // its sender, if in this urdmad
}

// dropped counts a message that is dropped for a verdict.
func (p *Pair) dropped(v qp.Verdict) {
	switch v.Is {
	case qp.NoReceive, qp.Busy:
		p.s.Stats.NoReceive++
	case qp.NoRoom:
		p.s.Stats.NoRoom++
	}
}

// begin takes a receive for a message and writes the address header.
func (p *Pair) begin(a *arrival) qp.Verdict {
	v := p.QP.BeginReceive(0, wire.GRHLen+uint32(a.length))
	switch v.Is {
	case qp.Done:
		p.starved = false
		var grh [wire.GRHLen]byte
		wire.PutGRH(grh[:], a.src, a.dst, a.class, wire.UDPLen+p.port.form.Len(a.Message, uint32(a.length)))
		return p.place(grh[:])
	case qp.BadReceive:
		p.fail()
	}
	return v
}

// place writes the next bytes of a message.
func (p *Pair) place(data []byte) qp.Verdict {
	v := p.QP.PlaceDatagram(data)
	if v.Is == qp.Revoked {
		p.fail()
	}
	return v
}

// end completes the receive.
func (p *Pair) end(a *arrival) {
	p.QP.EndSend(qp.Ending{HasImmediate: a.HasImmediate, Immediate: a.Immediate, Solicited: a.Solicited,
		SrcQP: uint32(a.Src), SourceLID: lidOf(a.src), HeaderRoom: wire.GRHLen})
}

// lidOf returns the LID of an address: its low 16 bits (docs/WIRE.md chapter 9), with bit 16 set for IPv6.
func lidOf(a netip.Addr) uint32 {
	b := a.As16()
	lid := uint32(b[14])<<8 | uint32(b[15])
	if a.Is6() && !a.Is4In6() {
		lid |= 1 << 16
	}
	return lid
}

// fail ends the queue pair because of an invalid receive.
func (p *Pair) fail() {
	if p.live() {
		p.QP.FlushForReceive()
		p.withdraw()
	}
}
