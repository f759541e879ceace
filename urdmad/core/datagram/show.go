package datagram

import (
	"net/netip"

	"urdma/urdmad/core/qp"
)

// This file shows captures the packets that would be on the wire between queue pairs of this urdmad.

// Observer is told of these packets.
type Observer interface {
	// Packet: from sends a packet to one of our addresses or to a group. to is its receiver, nil for none
	// or for a group's members; note is the reason for dropping it. build writes the packet and returns its
	// length.
	Packet(from, to *qp.Connection, dst netip.Addr, note string, build func(b []byte) int)
}

// connection returns the receiver's connection for an Observer.
func (c *sender) connection() *qp.Connection {
	if c == nil {
		return nil
	}
	return &c.Connection
}

// show shows the message of the work request at index i.
func (p *Pair) show(to *sender, dst netip.Addr, i uint32, h *Message, note string) {
	o := p.s.Observer
	if o == nil {
		return
	}
	wr, header := p.QP.SQ.At(i), *h // a copy, because what o gets is on the heap
	o.Packet(&p.Connection, to.connection(), dst, note, func(b []byte) int {
		if !p.build(b, wr, &header, p.s.form) {
			return 0
		}
		return p.s.form.Len(header, wr.Length)
	})
}

// show shows the packets of a piece of a message.
func (c *UC) show(to *sender, first Part, piece []byte, note string) {
	o := c.s.Observer
	if o == nil {
		return
	}
	h := first // a copy, as above
	limit, last, whole := int(c.s.form.PartLen(c.QP, h.Write, c.port.If.MaxDatagram())), h.Last, uint32(len(piece))
	for more := true; more; more = len(piece) > 0 {
		part := piece[:min(limit, len(piece))]
		piece = piece[len(part):]
		h.PSN, h.Last = c.psn, last && len(piece) == 0
		c.psn = c.psn.Add(1)
		o.Packet(&c.Connection, to.connection(), c.Peer.Addr(), note, func(b []byte) int {
			at, length := c.s.form.PutPart(b, h, uint32(len(part)), whole)
			copy(b[at:], part)
			return length
		})
		h.First, h.TO = false, h.TO+uint64(len(part))
	}
}
