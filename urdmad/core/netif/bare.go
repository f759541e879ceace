package netif

import (
	"encoding/binary"
	"math"
	"net/netip"

	"urdma/dpdk/port"
	"urdma/wire"
)

// This file is for RoCEv2, whose packets end with a CRC that covers the IP and UDP
// headers, too. On a port of datagrams they have no encapsulation header, and the
// kernel makes the headers: what is computed over them must foretell them.

// Seal is about what ends a UDP payload: ip are the IP and UDP headers in front of it.
type Seal interface {
	Put(ip, payload []byte)
	// Unseen is the IPv4 identification of a payload that has come by way of a socket, and whether
	// it had don't-fragment; ok is false if its end is wrong.
	Unseen(ip, payload []byte) (id uint16, whole, ok bool)
}

// CarryBare says that UDP payloads are whole packets of a protocol which seals them:
// there is no encapsulation header, and paths are not probed. Before the first Poll.
func (n *Interface) CarryBare(s Seal) {
	n.seal = s
	n.mtus = nil
	n.Batches.goBack = true
}

// Heads are the IP and UDP headers of the datagram that Next returned last, without
// options, or whatever came in front of its payload. On a port of datagrams they are made
// up: with IPv4, the kernel shows no identification, and it is 0.
func (n *Interface) Heads(d *Datagram) []byte {
	if !n.info.Datagrams {
		return d.packet.Data[wire.EthernetLen:d.from]
	}
	if r := &n.rx; r.heads == nil || r.headsFor != len(d.Data) {
		r.heads, r.headsFor = putHeads(r.headRoom[:], d.Src, d.Dst, len(d.Data)), len(d.Data)
	}
	return n.rx.heads
}

// Class is the traffic class of the datagram that Next returned last, or its TOS.
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

// Congested reports whether a router on the way of the datagram that Next returned last had
// a queue (RFC 3168, CE).
func (n *Interface) Congested(d *Datagram) bool {
	const congested = 3
	return n.Class(d)&congested == congested
}

// putHeads writes IP and UDP headers as the kernel makes them for a datagram that
// nobody may fragment, checksums apart, and returns them.
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

// bare takes a packet of a port of datagrams as it is.
func (n *Interface) bare(p *port.Packet) bool {
	d := &n.rx.datagram
	if w := (origin{peer: p.Peer, dst: p.Group}); w != n.rx.origin {
		n.rx.origin, n.rx.heads = origin{}, nil
		src, dst := p.Peer.Addr(), n.bareDst(p)
		switch {
		case !dst.IsValid():
			n.Drop(DropLeft)
			return false
		case p.Group != 0 && src == n.IP() && p.Peer.Port == n.addr.SocketPort: // its members here have it
			n.Drop(DropSelf)
			return false
		}
		if src.IsMulticast() && p.Flags.Has(port.RxInside) { // it has where it goes to
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

// number gives a frame that was made up the identification with which its payload came.
func (n *Interface) number(frame []byte) {
	ip := frame[wire.EthernetLen:]
	id, whole, ok := n.seal.Unseen(ip[:wire.IPv4Len+wire.UDPLen], ip[wire.IPv4Len+wire.UDPLen:])
	if !ok {
		return
	}
	binary.BigEndian.PutUint16(ip[4:], id)
	if !whole {
		ip[6] = 0
	}
	ip[10], ip[11] = 0, 0
	binary.BigEndian.PutUint16(ip[10:], ^wire.Fold(wire.Checksum(0, ip[:wire.IPv4Len])))
}

// bareDst is where a packet of such a port was sent to; invalid if it is a group that was left.
func (n *Interface) bareDst(p *port.Packet) netip.Addr {
	if p.Group != 0 {
		return n.groups.of(p)
	}
	return n.IP()
}

// barePath is Path of such a port: packets leave from its socket to that port number at
// the peer, whichever his come from.
func (n *Interface) barePath(link Link, local, peer netip.AddrPort) Path {
	p := n.FramePath(link, netip.AddrPortFrom(local.Addr(), n.addr.SocketPort), netip.AddrPortFrom(peer.Addr(), n.addr.SocketPort))
	p.batch = n.Batches.to(peer.Addr())
	p.len, p.whole, p.peer = 0, math.MaxInt, port.PeerOf(netip.AddrPortFrom(peer.Addr(), n.addr.SocketPort))
	return p
}

// sendBare completes a datagram of a path that barePath has made. It is sealed for an
// identification of 0: where it leaves with others, the port changes that (udp.Options.Renumber).
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
