package trp

import (
	"urdma/urdmad/core/datagram"
	"urdma/urdmad/core/netif"
	"urdma/urdmad/core/qp"
	"urdma/wire"
)

// Datagrams is the format of messages between queue pairs of types UD and UC on TRP's ports (docs/WIRE.md
// chapters 10 and 13); it implements datagram.Form.
type Datagrams struct{}

// Port implements datagram.Form.
func (Datagrams) Port() uint16 { return wire.DatagramPort }

// Len implements datagram.Form.
func (Datagrams) Len(_ datagram.Message, n uint32) int { return wire.DatagramLen + int(n) }

// Put implements datagram.Form.
func (Datagrams) Put(b []byte, m datagram.Message, _ uint32) (at int) {
	(*wire.Datagram)(&m).Put(b)
	return wire.DatagramLen
}

// PartLen implements datagram.Form.
func (Datagrams) PartLen(_ *qp.QP, write bool, room int) uint32 {
	return uint32(room - (&wire.UC{Write: write}).Len())
}

// PutPart implements datagram.Form.
func (Datagrams) PutPart(b []byte, p datagram.Part, n, _ uint32) (at, length int) {
	at = (*wire.UC)(&p).Put(b)
	return at, at + int(n)
}

// NewFlow implements datagram.Form.
func (Datagrams) NewFlow() datagram.Flow { return nil }

// datagram handles a packet for a queue pair of type UD or UC.
func (p *Port) datagram(op wire.TRPOp, d *netif.Datagram) {
	if d.Dst.Port() != wire.DatagramPort || d.Src.Port() != wire.DatagramPort {
		p.datagrams.Stats().Malformed++
		return
	}
	if op == wire.OpUC && !d.Dst.Addr().IsMulticast() {
		p.part(d)
		return
	}
	var h wire.Datagram
	if err := h.Parse(d.Head); err != nil {
		p.datagrams.Stats().Malformed++
		return
	}
	p.datagrams.Arrived(d, datagram.Message(h), 0, d.Data[wire.DatagramLen:])
}

// part handles a packet for a queue pair of type UC.
func (p *Port) part(d *netif.Datagram) {
	var h wire.UC
	n, err := h.Parse(d.Head)
	if err != nil {
		p.datagrams.Stats().Malformed++
		return
	}
	if to := p.datagrams.UC(h.Dst, d.Src.Addr(), h.Src); to != nil && !to.Late(h.PSN) {
		to.Take((*datagram.Part)(&h), d.Data[n:])
	}
}
