package trp

import (
	"urdma/urdmad/core/datagram"
	"urdma/urdmad/core/netif"
	"urdma/urdmad/core/qp"
	"urdma/wire"
)

// Datagrams is the form of messages of queue pairs of types UD and UC on TRP's ports
// (docs/WIRE.md chapters 10 and 13): a datagram.Form.
type Datagrams struct{}

// Port is datagram.Form's.
func (Datagrams) Port() uint16 { return wire.DatagramPort }

// Len is datagram.Form's.
func (Datagrams) Len(_ datagram.Message, n uint32) int { return wire.DatagramLen + int(n) }

// Put is datagram.Form's.
func (Datagrams) Put(b []byte, m datagram.Message, _ uint32) (at int) {
	(*wire.Datagram)(&m).Put(b)
	return wire.DatagramLen
}

// PartLen is datagram.Form's.
func (Datagrams) PartLen(_ *qp.QP, write bool, room int) uint32 {
	return uint32(room - (&wire.UC{Write: write}).Len())
}

// PutPart is datagram.Form's.
func (Datagrams) PutPart(b []byte, p datagram.Part, n, _ uint32) (at, length int) {
	at = (*wire.UC)(&p).Put(b)
	return at, at + int(n)
}

// NewFlow is datagram.Form's.
func (Datagrams) NewFlow() datagram.Flow { return nil }

// datagram takes a packet between queue pairs of types UD and UC. Else it says why not.
func (p *Port) datagram(op wire.TRPOp, d *netif.Datagram) (why string) {
	if d.Dst.Port() != wire.DatagramPort || d.Src.Port() != wire.DatagramPort {
		p.datagrams.Stats().Malformed++
		return "datagrams have UDP port number 30034"
	}
	if op == wire.OpUC && !d.Dst.Addr().IsMulticast() {
		return p.part(d)
	}
	var h wire.Datagram
	if err := h.Parse(d.Head); err != nil {
		p.datagrams.Stats().Malformed++
		return err.Error()
	}
	return p.datagrams.Arrived(d, datagram.Message(h), 0, d.Data[wire.DatagramLen:])
}

// part takes a packet between queue pairs of type UC. Else it says why not.
func (p *Port) part(d *netif.Datagram) (why string) {
	var h wire.UC
	n, err := h.Parse(d.Head)
	if err != nil {
		p.datagrams.Stats().Malformed++
		return err.Error()
	}
	to, why := p.datagrams.UC(h.Dst, d.Src.Addr(), h.Src)
	if to == nil {
		return why
	}
	if why := to.Late(h.PSN); why != "" {
		return why
	}
	return to.Take((*datagram.Part)(&h), d.Data[n:])
}
