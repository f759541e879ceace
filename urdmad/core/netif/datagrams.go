package netif

import (
	"net/netip"

	"urdma/dpdk/port"
	"urdma/wire"
)

// This file is for ports that are UDP sockets: there TRP follows an encapsulation header (docs/WIRE.md
// chapter 11). The kernel makes all other headers.

// encapsulated handles one packet; it returns true for a datagram to be returned by Next.
func (n *Interface) encapsulated(p *port.Packet) bool {
	if n.seal != nil {
		return n.bare(p)
	}
	var h wire.Encap
	if err := h.Parse(p.Data); err != nil {
		n.Drop(Drop(err.Error()))
		return false
	}
	data := p.Data[wire.EncapLen:]
	switch h.Type {
	case wire.EncapTRP:
	case wire.EncapPadded:
		var err error
		if data, err = wire.Unpad(data); err != nil {
			n.Drop(Drop(err.Error()))
			return false
		}
	default:
		n.pathProbe(h.Type, p, data)
		return false
	}
	d := &n.rx.datagram
	if w := (origin{p.Peer, h.Src, h.Dst}); w != n.rx.origin {
		n.rx.origin = w
		d.Src, d.Dst = netip.AddrPortFrom(p.Peer.Addr(), h.Src), netip.AddrPortFrom(n.IP(), h.Dst)
		d.Link = Link{Port: p.Peer.Port}
		if d.Src.Addr().IsMulticast() && p.Flags.Has(port.RxInside) { // from another worker: Peer has the group
			d.Src, d.Dst = netip.AddrPortFrom(n.IP(), h.Src), netip.AddrPortFrom(d.Src.Addr(), h.Dst)
		}
	}
	d.Head, d.Data = data[:min(len(data), wire.MaxHeaderLen)], data
	d.packet, d.from = p, wire.EncapLen
	return true
}

// origin has what is common to all datagrams that a peer's kernel cut out of one send: addresses are
// converted once for all of them.
type origin struct {
	peer     port.Peer
	src, dst uint16
}
