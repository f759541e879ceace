package datagram

import (
	"net/netip"

	"urdma/urdmad/core/qp"
	"urdma/wire"
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
func (p *Pair) show(to *sender, dst netip.Addr, i uint32, h *wire.Datagram, note string) {
	o := p.s.observer
	if o == nil {
		return
	}
	wr, header := p.QP.SQ.At(i), *h // a copy: what o gets is on the heap
	o.Packet(&p.Connection, to.connection(), dst, note, func(b []byte) int {
		if !p.build(b, i, wr, &header, ours) {
			return 0
		}
		return wire.DatagramLen + int(wr.Length)
	})
}

// show shows the packets that a piece of a message would go in.
func (c *UC) show(to *sender, first wire.UC, piece []byte, note string) {
	o := c.s.observer
	if o == nil {
		return
	}
	h := first // a copy, as above
	limit, last := c.port.If.MaxDatagram()-h.Len(), h.Last
	for more := true; more; more = len(piece) > 0 {
		part := piece[:min(limit, len(piece))]
		piece = piece[len(part):]
		h.PSN, h.Last = c.psn, last && len(piece) == 0
		c.psn = c.psn.Add(1)
		o.Packet(&c.Connection, to.connection(), c.peer, note, func(b []byte) int {
			at := h.Put(b)
			return at + copy(b[at:], part)
		})
		h.First, h.TO = false, h.TO+uint64(len(part))
	}
}
