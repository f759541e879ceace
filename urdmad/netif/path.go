package netif

import (
	"net/netip"

	"urdma/wire"
)

// Path is the way from an address and port number of ours to a peer's: the outer
// headers of its packets, as a template.
type Path struct {
	n   *Interface
	hop netip.Addr // zero: not followed
	hdr wire.UDPHeader
}

// Path returns the path of packets from local to peer by the neighbour mac.
func (n *Interface) Path(mac wire.MAC, local, peer netip.AddrPort) Path {
	p := Path{n: n}
	p.hdr.Init(n.info.MAC, mac, local.Addr().As4(), peer.Addr().As4(), local.Port(), peer.Port())
	return p
}

// Follow has p follow its next hop to whatever Ethernet address that takes, until
// Leave. p must not be copied meanwhile.
func (p *Path) Follow() {
	hop, ok := p.n.NextHop(netip.AddrFrom4(p.hdr.Dst()))
	if !ok {
		return // it came from there, so answers go there
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

// Confirm asks whether the next hop is still where it was: nothing comes back.
func (p *Path) Confirm() {
	if p.hop.IsValid() {
		p.n.sendARP(p.n.neighbours.Confirm(int64(p.n.clock.Now), p.hop.As4()))
	}
}

// Len is how many bytes of a frame stand in front of the UDP payload.
func (p *Path) Len() int { return len(p.hdr) }

// Payload is where a frame's UDP payload goes.
func (p *Path) Payload(frame []byte) []byte { return frame[len(p.hdr):] }

// Put completes a frame whose payload of length bytes is in place and returns
// the frame's length.
func (p *Path) Put(frame []byte, length int) int {
	p.hdr.Put(frame, length, p.n.nextIPID())
	length += len(p.hdr)
	if !p.n.info.TxUDPChecksum {
		wire.SetUDPChecksum(frame[:length])
	}
	return length
}

// Send completes the frame in the buffer that Alloc returned last, whose payload
// of length bytes is in place, and queues it.
func (p *Path) Send(frame []byte, length int) { p.n.commit(p.Put(frame, length)) }
