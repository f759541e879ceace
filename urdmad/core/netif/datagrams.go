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

// sightOf returns the frame that shows a received packet to a tap.
func (n *Interface) sightOf(p *port.Packet) []byte {
	if n.info.Datagrams {
		dst := n.bareDst(p)
		if !dst.IsValid() {
			dst = n.IP()
		}
		return n.frameOf(p.Data, &p.Peer, dst, false)
	}
	return p.Data
}

// frameOf makes the frame that a datagram between a peer and an address of ours, or a group, would be on a
// port of frames. Its port numbers are those in the encapsulation header, or of the sockets if that is
// invalid. The frame is valid until the next one is made.
func (n *Interface) frameOf(data []byte, peer *port.Peer, local netip.Addr, out bool) []byte {
	h := wire.Encap{Src: peer.Port, Dst: n.addr.SocketPort}
	if out {
		h.Src, h.Dst = h.Dst, h.Src
	}
	if seen := h; n.seal == nil && seen.Parse(data) == nil &&
		(seen.Type == wire.EncapTRP || seen.Type == wire.EncapPadded) {
		h = seen
		data = data[wire.EncapLen:]
		if packet, err := wire.Unpad(data); seen.Type == wire.EncapPadded && err == nil {
			data = packet
		}
	}
	src, dst := netip.AddrPortFrom(peer.Addr(), h.Src), netip.AddrPortFrom(local, h.Dst)
	if out {
		src, dst = netip.AddrPortFrom(local, h.Src), netip.AddrPortFrom(peer.Addr(), h.Dst)
	}
	if size := wire.UDP6HeaderLen + len(data); len(n.shown) < size {
		n.shown = make([]byte, size)
	}
	frame := n.shown[:wire.PutUDP(n.shown, src, dst, data)]
	if n.seal != nil && !out && src.Addr().Is4() {
		n.number(frame)
	}
	return frame
}
