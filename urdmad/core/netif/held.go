package netif

import (
	"urdma/dpdk/port"
	"urdma/wire"
)

// Account is how much of an interface's memory one taker of datagrams has kept.
type Account struct{ kept int }

// Held is a datagram that was kept; the zero Held is none.
type Held struct {
	packet  port.Packet
	from, n int // the payload within packet.Data
}

// Keep takes the datagram that Next returned last out of the port's rings for
// long, on an account. False: there is no memory for it, and it has to be given
// up.
//
// An account may keep as many datagrams as are still free for all (dynamic
// thresholds, Choudhury and Hahne 1998): one alone gets half of what the port
// can retain, and however many keep all they can, something is left for the next.
func (n *Interface) Keep(a *Account, d *Datagram) (Held, bool) {
	if a.kept >= n.queue.Retainable()-n.kept {
		return Held{}, false
	}
	h := Held{packet: *d.packet, from: d.from, n: len(d.Data)}
	if n.info.Datagrams {
		h.packet.Data = h.packet.Data[:h.from+h.n] // what pads it may be more than a packet's room
	}
	if err := n.queue.Retain(&h.packet); err != nil {
		return Held{}, false
	}
	d.kept = true
	a.kept++
	n.kept++
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
func (n *Interface) Release(a *Account, h *Held) {
	if h.Any() {
		a.kept--
		n.kept--
		one := [1]port.Packet{h.packet}
		*h = Held{}
		n.queue.Free(one[:])
	}
}
