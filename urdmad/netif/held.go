package netif

import (
	"urdma/dpdk/port"
	"urdma/wire"
)

// Held is a datagram that was kept; the zero Held is none.
type Held struct {
	packet  port.Packet
	from, n int // the payload within packet.Data
}

// Keep takes the datagram that Next returned last out of the port's rings for
// long. False: there is no memory for it, and it has to be given up.
func (n *Interface) Keep(d *Datagram) (Held, bool) {
	h := Held{packet: *d.packet, from: d.from, n: len(d.Data)}
	if err := n.queue.Retain(&h.packet); err != nil {
		return Held{}, false
	}
	d.kept = true
	return h, true
}

// Any reports whether h holds a datagram.
func (h *Held) Any() bool { return h.packet.Data != nil }

// Payload returns the datagram's payload from its byte off on, and a private copy
// of that part's head in head.
func (h *Held) Payload(off int, head *[wire.MaxHeaderLen]byte) (private, data []byte) {
	data = h.packet.Data[h.from+min(off, h.n) : h.from+h.n]
	return head[:copy(head[:], data)], data
}

// Release gives the datagram back to the port.
func (n *Interface) Release(h *Held) {
	if h.Any() {
		one := [1]port.Packet{h.packet}
		*h = Held{}
		n.queue.Free(one[:])
	}
}
