package netif

import (
	"urdma/dpdk/port"
	"urdma/wire"
)

// Account counts how much of an interface's memory one user of datagrams keeps.
type Account struct{ kept int }

// Held is a datagram that was kept; the zero Held has none.
type Held struct {
	packet  port.Packet
	from, n int // position of the payload in packet.Data
}

// Keep moves the datagram that Next returned last out of the port's rings, so that it can be kept for long,
// and charges an account. It returns false if there is no memory for it; then the datagram must be dropped.
//
// An account may keep as many datagrams as are still free for all (dynamic thresholds, Choudhury and Hahne
// 1998). A single account gets half of what the port can retain; however many accounts keep their maximum,
// some is left for the next.
func (n *Interface) Keep(a *Account, d *Datagram) (Held, bool) {
	if a.kept >= n.queue.Retainable()-n.kept {
		return Held{}, false
	}
	h := Held{packet: *d.packet, from: d.from, n: len(d.Data)}
	if n.info.Datagrams {
		h.packet.Data = h.packet.Data[:h.from+h.n] // padding may exceed a packet's buffer
	}
	if err := n.queue.Retain(&h.packet); err != nil {
		return Held{}, false
	}
	d.kept = true
	a.kept++
	n.kept++
	return h, true
}

// Any reports whether h has a datagram.
func (h *Held) Any() bool { return h.packet.Data != nil }

// Payload returns the datagram's payload from offset off, and a private copy of the beginning of that part
// in head.
func (h *Held) Payload(off int, head *[wire.MaxHeaderLen]byte) (private, data []byte) {
	data = h.packet.Data[h.from+min(off, h.n) : h.from+h.n]
	return head[:copy(head[:], data)], data
}

// Release returns the datagram to the port.
func (n *Interface) Release(a *Account, h *Held) {
	if h.Any() {
		a.kept--
		n.kept--
		one := [1]port.Packet{h.packet}
		*h = Held{}
		n.queue.Free(one[:])
	}
}
