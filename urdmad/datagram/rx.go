package datagram

import (
	"net/netip"

	"urdma/urdmad/netif"
	"urdma/urdmad/qp"
	"urdma/verbs/abi"
	"urdma/wire"
)

// Is reports whether a datagram of an interface's is one for Receive.
func Is(d *netif.Datagram) bool {
	op, ok := wire.PeekOp(d.Head)
	return ok && (op == wire.OpDatagram || op == wire.OpUC)
}

// Receive handles a datagram between queue pairs that came from the wire.
func (p *Port) Receive(d *netif.Datagram) {
	s := p.s
	if d.Dst.Port() != wire.DatagramPort || d.Src.Port() != wire.DatagramPort {
		s.Stats.Malformed++
		p.If.Note("dropped: datagrams have UDP port number 30034")
		return
	}
	if op, _ := wire.PeekOp(d.Head); op == wire.OpUC && !d.Dst.Addr().IsMulticast() {
		p.receiveUC(d)
		return
	}
	var h wire.Datagram
	if err := h.Parse(d.Head); err != nil {
		s.Stats.Malformed++
		p.If.Note("dropped: " + err.Error())
		return
	}
	s.Stats.Received++
	if why := s.arrived(p, d, &h); why != "" {
		p.If.Note("dropped: " + why)
	}
}

// arrived gives a message to its queue pair; else it says why not.
func (s *Stack) arrived(p *Port, d *netif.Datagram, h *wire.Datagram) (why string) {
	data := d.Data[wire.DatagramLen:]
	a := arrival{h: h, src: d.Src.Addr(), dst: d.Dst.Addr(), length: len(data)}
	if group := d.Dst.Addr(); group.IsMulticast() {
		return s.arrivedGroup(p, group, &a, data)
	}
	to := s.destination(p, h)
	if to == nil {
		return whyNobody
	}
	switch how := to.begin(&a); how {
	case begun:
	case noReceive:
		s.Stats.NoReceive++
		fallthrough
	default:
		return whyNot[how]
	}
	if !to.QP.Recv.Scatter(data) {
		to.breakReceive()
		return "the receive's memory was deregistered"
	}
	to.end(&a)
	return ""
}

// destination is the queue pair that a message goes to, nil if there is none, or
// if its Q_Key is another; that is counted.
func (s *Stack) destination(p *Port, h *wire.Datagram) *Pair {
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

// arrival is a message that has come.
type arrival struct {
	h        *wire.Datagram
	src, dst netip.Addr
	length   int // bytes
}

// beginning is how taking a receive went.
type beginning uint8

const (
	begun beginning = iota
	noReceive
	noRoom // counted
	failed
)

// whyNobody and whyNot say why a message is dropped.
const whyNobody = "no queue pair takes it"

var whyNot = [...]string{noReceive: "no receive is posted", noRoom: "the receive is too short", failed: "the receive is wrong"}

// begin takes a receive for a message and writes its header room.
func (p *Pair) begin(a *arrival) beginning {
	q := p.QP
	if q.Client.Backlogged() {
		return noReceive
	}
	switch q.Recv.TakeFor(wire.GRHLen + uint32(a.length)) {
	case qp.NoReceive:
		return noReceive
	case qp.ReceiveTooShort:
		p.s.Stats.NoRoom++
		return noRoom
	case qp.BadReceive:
		p.fail()
		return failed
	}
	p.starved = false
	var grh [wire.GRHLen]byte
	wire.PutGRH(grh[:], a.src, a.dst, a.length)
	if !q.Recv.Scatter(grh[:]) {
		p.breakReceive()
		return failed
	}
	return begun
}

// end completes the receive.
func (p *Pair) end(a *arrival) {
	how := abi.CQE{SrcQP: uint32(a.h.Src), WCFlags: abi.WCGRH, SourceLID: lidOf(a.src)}
	if a.h.HasImmediate {
		how.WCFlags |= abi.WCWithImm
		how.ImmOrSTag = a.h.Immediate
	}
	p.QP.Stats.BytesRecv -= wire.GRHLen // Arrived counts what was written
	p.QP.Recv.Arrived(how, a.h.Solicited)
}

// lidOf is the LID that stands for an address: its low 16 bits (docs/WIRE.md
// chapter 9), with bit 16 set for one of IPv6.
func lidOf(a netip.Addr) uint32 {
	b := a.As16()
	lid := uint32(b[14])<<8 | uint32(b[15])
	if a.Is6() && !a.Is4In6() {
		lid |= 1 << 16
	}
	return lid
}

// breakReceive completes a receive whose memory was deregistered, and ends the
// queue pair.
func (p *Pair) breakReceive() {
	p.QP.Recv.End(abi.CQE{Status: abi.StatusLocProtErr}, false)
	p.fail()
}

// fail ends the queue pair because of a wrong receive.
func (p *Pair) fail() {
	if p.live() {
		p.QP.Flush()
		p.withdraw()
	}
}
