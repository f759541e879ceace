package netif

import (
	"math"
	"net/netip"

	"urdma/dpdk/port"
	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/pathmtu"
	"urdma/wire"
)

// This file discovers path MTUs of a port of datagrams (docs/WIRE.md chapter 11).

// basePacket is the length of an IP packet that every path is assumed to carry (RFC 8899 section 5.1.2).
const basePacket = 1200

// FindPaths enables path MTU discovery on a port of datagrams; random must return unpredictable numbers.
func (n *Interface) FindPaths(random func() uint32) {
	if !n.info.Datagrams {
		return
	}
	n.mtus = pathmtu.New(basePacket-n.headerLen(), n.maxPayload(), random)
	n.mtus.Changed = n.pathChanged
	n.mtuTimer = clock.NewTimer(func() { n.probe(n.mtus.Tick(int64(n.clock.Now))) })
}

// maxPayload returns the length of the largest UDP payload of a port of datagrams.
func (n *Interface) maxPayload() int { return n.MaxDatagram() + wire.EncapLen }

// Look calls done once the MTU of the path to a peer is known, or is found not to be discoverable. done may
// be nil.
func (n *Interface) Look(peer netip.Addr, l Link, done func()) {
	if n.mtus == nil {
		if done != nil {
			done()
		}
		return
	}
	n.probe(n.mtus.Find(int64(n.clock.Now), netip.AddrPortFrom(peer, l.Port), done))
}

// MaxDatagramTo is MaxDatagram limited by the known MTU of the path to a peer.
func (n *Interface) MaxDatagramTo(peer netip.Addr) int {
	return min(n.MaxDatagram(), n.takesWhole(peer)-wire.EncapLen)
}

// takesWhole returns the length of the longest UDP payload that is sent to a peer with don't-fragment.
func (n *Interface) takesWhole(peer netip.Addr) int {
	if n.mtus != nil {
		if size, known := n.mtus.Size(peer); known {
			return size
		}
	}
	return math.MaxInt
}

// suspectPath discovers a path's MTU again, because no packet gets through.
func (n *Interface) suspectPath(peer *port.Peer) {
	if n.mtus != nil {
		n.probe(n.mtus.Suspect(int64(n.clock.Now), netip.AddrPortFrom(peer.Addr(), peer.Port)))
	}
}

// pathChanged applies a new path MTU: longer datagrams may be fragmented.
func (n *Interface) pathChanged(peer netip.Addr, size int) {
	for p := range n.paths[peer] {
		p.whole = size
	}
}

// probe sends the probes of the table and sets its timer.
func (n *Interface) probe(out []pathmtu.Outgoing) {
	for _, o := range out {
		peer := port.PeerOf(o.To)
		n.sendProbe(wire.EncapProbe, o.Nonce, &peer, o.Size)
	}
	n.clock.Set(n.mtuTimer, clock.Time(n.mtus.Deadline()))
}

// sendProbe sends a probe or an answer of size bytes.
func (n *Interface) sendProbe(kind wire.EncapType, nonce uint32, peer *port.Peer, size int) {
	b := n.Alloc()
	if b == nil {
		return // as if lost
	}
	head := wire.Encap{Type: kind}
	head.Put(b)
	probe := wire.PathProbe{Nonce: nonce, Most: uint16(n.maxPayload())}
	probe.Put(b[wire.EncapLen:size])
	n.commitTo(peer, size, port.TxWhole|port.TxAlone)
}

// pathProbe handles a probe, which is answered with the same length, or an answer.
func (n *Interface) pathProbe(kind wire.EncapType, p *port.Packet, body []byte) {
	var probe wire.PathProbe
	if err := probe.Parse(body); err != nil {
		n.Drop(Drop(err.Error()))
		return
	}
	switch {
	case kind == wire.EncapProbe && !n.answered.probes.one(n.clock.Now):
		n.Drop(DropProbes)
	case kind == wire.EncapProbe && len(p.Data) <= n.maxPayload():
		n.sendProbe(wire.EncapAnswer, probe.Nonce, &p.Peer, len(p.Data))
	case kind == wire.EncapAnswer && n.mtus != nil:
		n.probe(n.mtus.Answered(int64(n.clock.Now), p.Peer.Addr(), probe.Nonce, len(p.Data), int(probe.Most)))
	}
}
