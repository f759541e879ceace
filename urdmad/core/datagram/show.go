package datagram

import (
	"net/netip"

	"urdma/urdmad/core/qp"
)

// This file shows what a wire would carry between queue pairs of this urdmad to
// captures.

// Observer is shown it.
type Observer interface {
	// Packet: from sends a packet to an address of ours or to a group. to is its
	// receiver, nil for none or a group's members; note why it is dropped. build
	// writes it and returns its length.
	Packet(from, to *qp.Connection, dst netip.Addr, note string, build func(b []byte) int)
}

// SetObserver has o shown everything from now on; nil ends that.
func (s *Stack) SetObserver(o Observer) { s.observer = o }

// connection is what an Observer gets of a receiver.
func (c *sender) connection() *qp.Connection {
	if c == nil {
		return nil
	}
	return &c.Connection
}

// show shows the message of the work request at index i.
func (p *Pair) show(to *sender, dst netip.Addr, i uint32, h *Message, note string) {
	o := p.s.observer
	if o == nil {
		return
	}
	wr, header := p.QP.SQ.At(i), *h // a copy: what o gets is on the heap
	o.Packet(&p.Connection, to.connection(), dst, note, func(b []byte) int {
		if !p.build(b, wr, &header, p.s.form) {
			return 0
		}
		return p.s.form.Len(header, wr.Length)
	})
}

// show shows the packets that a piece of a message would go in.
func (c *UC) show(to *sender, first Part, piece []byte, note string) {
	o := c.s.observer
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
