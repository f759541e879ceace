package netif

import (
	"net/netip"

	"urdma/dpdk/port"
	"urdma/wire"
)

// Path is the path from an address and port number of ours to a peer's, with the headers of its packets as
// a template.
type Path struct {
	n     *Interface
	hop   netip.Addr // zero: not followed
	len   int        // length of the headers
	hdr   wire.UDPHeader
	hdr6  *wire.UDP6Header // of IPv6, in hdr
	peer  port.Peer        // the peer's socket, on a port of datagrams
	class uint8            // traffic class of bare datagrams
	head  wire.Encap
	whole int    // length of the longest datagram that is sent with don't-fragment
	batch *batch // nil on a port of frames
}

// Path returns the path from local to peer by a link.
func (n *Interface) Path(link Link, local, peer netip.AddrPort) Path {
	if !n.info.Datagrams {
		return n.FramePath(link, local, peer)
	}
	if n.seal != nil {
		return n.barePath(link, local, peer)
	}
	return Path{n: n, len: wire.EncapLen, head: wire.Encap{Src: local.Port(), Dst: peer.Port()},
		peer: port.PeerOf(netip.AddrPortFrom(peer.Addr(), link.Port)), whole: n.takesWhole(peer.Addr()),
		batch: n.Batches.to(peer.Addr())}
}

// FramePath returns a path whose packets are frames on every port, for frames that are only shown.
func (n *Interface) FramePath(link Link, local, peer netip.AddrPort) Path {
	p := Path{n: n, len: wire.UDPHeaderLen}
	if local.Addr().Is4() && peer.Addr().Is4() {
		p.hdr.Init(n.info.MAC, link.MAC, local.Addr().As4(), peer.Addr().As4(), local.Port(), peer.Port())
		return p
	}
	p.len, p.hdr6 = wire.UDP6HeaderLen, new(wire.UDP6Header)
	p.hdr6.Init(n.info.MAC, link.MAC, local.Addr().As16(), peer.Addr().As16(), local.Port(), peer.Port())
	return p
}

// dst returns the IP destination of a path of frames.
func (p *Path) dst() netip.Addr {
	if p.hdr6 != nil {
		return netip.AddrFrom16(p.hdr6.Dst())
	}
	return netip.AddrFrom4(p.hdr.Dst())
}

// setDst changes the destination Ethernet address of a path of frames.
func (p *Path) setDst(mac wire.MAC) {
	if p.hdr6 != nil {
		p.hdr6.SetDst(mac)
		return
	}
	p.hdr.SetDst(mac)
}

// SetSource changes the source port number of packets that don't leave through a socket.
func (p *Path) SetSource(number uint16) {
	switch {
	case p.n.info.Datagrams:
	case p.hdr6 != nil:
		p.hdr6.SetSource(number)
	default:
		p.hdr.SetSource(number)
	}
}

// SetTrafficClass sets the traffic class of packets. On a port of datagrams it applies only to bare ones,
// and 0 means the socket's.
func (p *Path) SetTrafficClass(class uint8) {
	p.class = class
	if p.hdr6 != nil {
		p.hdr6.SetTrafficClass(class)
		return
	}
	p.hdr.SetTrafficClass(class)
}

// Follow makes p follow changes of its next hop's Ethernet address, or on a port of datagrams of the path
// MTU, until Leave. p must not be copied in the meantime.
func (p *Path) Follow() {
	hop, ok := p.peer.Addr(), true
	if !p.n.info.Datagrams {
		hop, ok = p.n.NextHop(p.dst())
	}
	if !ok {
		return // packets from the peer arrived by this link, so answers use it too
	}
	p.hop = hop
	if p.n.paths[hop] == nil {
		p.n.paths[hop] = map[*Path]struct{}{}
	}
	p.n.paths[hop][p] = struct{}{}
}

// Leave undoes Follow.
func (p *Path) Leave() {
	if !p.hop.IsValid() {
		return
	}
	delete(p.n.paths[p.hop], p)
	if len(p.n.paths[p.hop]) == 0 {
		delete(p.n.paths, p.hop)
	}
	p.hop = netip.Addr{}
}

// Confirm verifies the next hop's address or the path MTU, because no answers arrive.
func (p *Path) Confirm() {
	if p.n.info.Datagrams {
		p.n.suspectPath(&p.peer)
		return
	}
	if p.hop.IsValid() {
		p.n.neighbours.confirm(p.hop)
	}
}

// Moved reports whether a datagram from the peer came from another socket than the path's. It is never true
// for frames: there the path follows the neighbour.
func (p *Path) Moved(d *Datagram) bool { return p.n.info.Datagrams && d.Link.Port != p.peer.Port }

// Move changes the path to the socket from which a datagram came.
func (p *Path) Move(d *Datagram) { p.peer.Port = d.Link.Port }

// MTU returns the length of the largest IP packet that the path is known to carry, in bytes; if it is
// unknown, the port's MTU.
func (p *Path) MTU() int {
	mtu := p.n.MTU()
	if !p.n.info.Datagrams {
		return mtu
	}
	return min(mtu, min(p.whole, mtu)+p.n.headerLen())
}

// Batch returns how many packets with length bytes of payload leave in one send; 1 on a port without
// batches.
func (p *Path) Batch(length int) int {
	if !p.n.info.Batches {
		return 1
	}
	return min(port.BatchPackets, port.BatchBytes/(length+wire.EncapLen))
}

// Again says that the next packet is a retransmission.
func (p *Path) Again() {
	if p.batch != nil {
		p.batch.sendAgain(p.n.clock.Now)
	}
}

// Payload returns the part of a frame for the UDP payload.
func (p *Path) Payload(frame []byte) []byte { return frame[p.len:] }

// Put completes a frame whose payload of length bytes is in place, and returns the frame's length.
func (p *Path) Put(frame []byte, length int) int {
	if p.hdr6 != nil {
		return p.put6(frame, length)
	}
	if p.n.seal != nil {
		return p.putSealed(frame, length)
	}
	p.hdr.Put(frame, length, p.n.nextIPID())
	length += len(p.hdr)
	if !p.n.info.TxUDPChecksum {
		wire.SetUDPChecksum(frame[:length])
	}
	return length
}

// putSealed is Put for a packet that ends with a CRC, so that it needs no UDP checksum. It must not be
// fragmented: it has identification 0 (RFC 6864 section 4.1), as packets of Linux's sockets have.
func (p *Path) putSealed(frame []byte, length int) int {
	p.hdr.Put(frame, length, 0)
	length += len(p.hdr)
	p.n.seal.Put(frame[wire.EthernetLen:len(p.hdr)], frame[len(p.hdr):length])
	return length
}

func (p *Path) put6(frame []byte, length int) int {
	p.hdr6.Put(frame, length)
	length += len(p.hdr6)
	if p.n.seal != nil {
		p.n.seal.Put(frame[wire.EthernetLen:len(p.hdr6)], frame[len(p.hdr6):length])
	}
	if !p.n.info.TxUDP6Checksum {
		wire.SetUDP6Checksum(frame[:length]) // 0 does not mean "none" in IPv6 (RFC 8200 section 8.1)
	}
	return length
}

// Send completes and queues the packet in the buffer that Alloc returned last, whose payload of length
// bytes is in place.
func (p *Path) Send(frame []byte, length int) {
	if p.n.info.Datagrams && p.n.seal != nil {
		p.sendBare(frame, length)
		return
	}
	if p.n.info.Datagrams {
		p.head.Put(frame)
		length += wire.EncapLen
		how := p.batch.send(p.n.clock.Now)
		if length > p.whole {
			how |= port.TxFragment
			length = p.stretch(frame, length)
		}
		alike := p.n.info.Batches && how == 0
		if alike {
			p.n.tx.level(&p.peer, length)
		}
		p.n.commitTo(&p.peer, length, how)
		p.n.tx.burst.padable = alike
		return
	}
	p.n.commit(p.Put(frame, length))
}
