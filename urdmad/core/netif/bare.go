package netif

import (
	"math"
	"net/netip"

	"urdma/dpdk/port"
	"urdma/wire"
)

// This file is for RoCEv2, whose packets end with a CRC over the payload and the IP and UDP headers. On a
// port of datagrams such packets have no encapsulation header, and the kernel makes the headers: the CRC
// must be computed over headers as the kernel will make them.

// Seal computes the CRC at the end of a UDP payload; ip is the IP and UDP headers before it.
type Seal interface {
	Put(ip, payload []byte)
}

// CarryBare says that UDP payloads are complete packets of a protocol with such a CRC: there is no
// encapsulation header, and paths are not probed. Call it before the first Poll.
func (n *Interface) CarryBare(s Seal) {
	n.seal = s
	n.mtus = nil
	n.Batches.goBack = true
}

// Heads returns the IP and UDP headers, without options, of the datagram that Next returned last, or the
// bytes before its payload. On a port of datagrams they are reconstructed; the kernel does not show the
// IPv4 identification, which is 0 there.
func (n *Interface) Heads(d *Datagram) []byte {
	if !n.info.Datagrams {
		return d.packet.Data[wire.EthernetLen:d.from]
	}
	if r := &n.rx; r.heads == nil || r.headsFor != len(d.Data) {
		r.heads, r.headsFor = putHeads(r.headRoom[:], d.Src, d.Dst, len(d.Data)), len(d.Data)
	}
	return n.rx.heads
}

// Class returns the traffic class or TOS of the datagram that Next returned last.
func (n *Interface) Class(d *Datagram) uint8 {
	if n.info.Datagrams {
		return d.packet.Class
	}
	ip := d.packet.Data[wire.EthernetLen:d.from]
	if ip[0]>>4 == 6 {
		return ip[0]<<4 | ip[1]>>4
	}
	return ip[1]
}

// Congested reports whether a router marked the datagram that Next returned last (RFC 3168, CE).
func (n *Interface) Congested(d *Datagram) bool {
	const congested = 3
	return n.Class(d)&congested == congested
}

// putHeads writes and returns IP and UDP headers, without checksums, as the kernel makes them for a
// datagram that must not be fragmented.
func putHeads(b []byte, src, dst netip.AddrPort, length int) []byte {
	if src.Addr().Is4() {
		var h wire.UDPHeader
		h.Init(wire.MAC{}, wire.MAC{}, src.Addr().As4(), dst.Addr().As4(), src.Port(), dst.Port())
		h.Put(b, length, 0)
		return b[wire.EthernetLen:wire.UDPHeaderLen]
	}
	var h wire.UDP6Header
	h.Init(wire.MAC{}, wire.MAC{}, src.Addr().As16(), dst.Addr().As16(), src.Port(), dst.Port())
	h.Put(b, length)
	return b[wire.EthernetLen:wire.UDP6HeaderLen]
}

// bare handles a bare packet of a port of datagrams.
func (n *Interface) bare(p *port.Packet) bool {
	d := &n.rx.datagram
	if w := (origin{peer: p.Peer, dst: p.Group}); w != n.rx.origin {
		n.rx.origin, n.rx.heads = origin{}, nil
		src, dst := p.Peer.Addr(), n.BareDst(p)
		switch {
		case !dst.IsValid():
			n.Drop(DropLeft)
			return false
		case p.Group != 0 && src == n.IP() && p.Peer.Port == n.addr.SocketPort: // our own multicast, already delivered
			n.Drop(DropSelf)
			return false
		}
		if src.IsMulticast() && p.Flags.Has(port.RxInside) { // from another worker: Peer has the group
			src, dst = n.IP(), src
		}
		n.rx.origin = w
		d.Src, d.Dst = netip.AddrPortFrom(src, p.Peer.Port), netip.AddrPortFrom(dst, n.addr.SocketPort)
		d.Link = Link{Port: p.Peer.Port}
	}
	d.Head, d.Data = p.Data[:min(len(p.Data), wire.MaxHeaderLen)], p.Data
	d.packet, d.from = p, 0
	return true
}

// BareDst returns the destination of a received bare packet; invalid if it is a group that was left.
func (n *Interface) BareDst(p *port.Packet) netip.Addr {
	if p.Group != 0 {
		return n.groups.of(p)
	}
	return n.IP()
}

// barePath is Path on such a port: packets leave from the port's socket to the same port number at the
// peer, whatever the source port of the peer's packets.
func (n *Interface) barePath(link Link, local, peer netip.AddrPort) Path {
	p := n.FramePath(link, netip.AddrPortFrom(local.Addr(), n.addr.SocketPort),
		netip.AddrPortFrom(peer.Addr(), n.addr.SocketPort))
	p.batch = n.Batches.to(peer.Addr())
	p.len, p.whole, p.peer = 0, math.MaxInt, port.PeerOf(netip.AddrPortFrom(peer.Addr(), n.addr.SocketPort))
	return p
}

// sendBare completes and queues a datagram on a path from barePath. Its CRC is computed for identification
// 0; if it leaves in a batch, the port corrects the CRC (udp.Options.Renumber).
func (p *Path) sendBare(frame []byte, length int) {
	heads, end := p.n.sealing[:], wire.UDPHeaderLen
	if p.hdr6 != nil {
		p.hdr6.Put(heads, length)
		end = wire.UDP6HeaderLen
	} else {
		p.hdr.Put(heads, length, 0)
	}
	p.n.seal.Put(heads[wire.EthernetLen:end], frame[:length])
	p.n.commitTo(&p.peer, length, port.TxWhole|p.batch.send(p.n.clock.Now))
	p.n.tx.p[p.n.tx.used-1].Class = p.class
}
