package netif

import (
	"net/netip"

	"urdma/dpdk/port"
	"urdma/wire"
)

// This file has what of a frame's way is IPv6's own.

// frame6 handles a frame with an IPv6 packet; true if it is a datagram to be handed
// up.
func (n *Interface) frame6(f *wire.Frame, head []byte, p *port.Packet) bool {
	switch {
	case !n.takes6(f.Dst6):
	case n.neighbours.Duplicate():
		n.Drop(DropDuplicate)
	case f.Proto == wire.ProtoICMPv6:
		n.icmp6(f, head, p)
	case f.Proto != wire.ProtoUDP:
	case n.martian6(f.Src6):
		n.Drop(DropSource6)
	case !n.checksum6Right(f, p):
		n.Drop(DropChecksum)
	default:
		n.datagram(f, netip.AddrFrom16(f.Src6), netip.AddrFrom16(f.Dst6), head, p)
		return true
	}
	return false
}

// takes6 reports whether packets for an address come to us: its own, the group at
// which it is asked for, all hosts, and groups that were joined.
func (n *Interface) takes6(dst wire.IPv6) bool {
	a := netip.AddrFrom16(dst)
	return a == n.IP() || n.IP().Is6() && (n.groups.joined[a] != nil || dst == wire.AllNodes)
}

// martian6 reports an address that no other host has (RFC 4291 section 2.5.3, 2.7):
// none, a group, one of this machine, or one that is written as IPv4's.
func (n *Interface) martian6(src wire.IPv6) bool {
	a := netip.AddrFrom16(src)
	return src.IsGroup() || a.IsLoopback() || a.Is4In6() || n.own6[src]
}

// checksum6Right verifies a UDP checksum unless the port has. There has to be one.
func (n *Interface) checksum6Right(f *wire.Frame, p *port.Packet) bool {
	if p.Flags&port.RxUDPBad != 0 {
		return false
	}
	return p.Flags.Has(port.RxUDPGood) && f.UDPChecksum != 0 ||
		wire.VerifyUDPChecksum(f, p.Data[f.PayloadOff-wire.UDPLen:f.PayloadOff+f.PayloadLen])
}

// icmp6 answers who asks for us or for groups, and echo requests; errors and what
// routers say are ignored: the MTU is the link's, the gateway is configured.
func (n *Interface) icmp6(f *wire.Frame, head []byte, p *port.Packet) {
	message := head[min(f.PayloadOff, len(head)):min(f.PayloadOff+f.PayloadLen, len(head))]
	if len(message) == 0 {
		return
	}
	switch message[0] {
	case wire.ICMPv6Solicit, wire.ICMPv6Advertise:
		n.discovery(f, message)
	case wire.ICMPv6MLDQuery:
		n.groups.query6(f, message)
	case wire.ICMPv6EchoRequest:
		if n.martian6(f.Src6) {
			n.Drop(DropSource6)
			return
		}
		n.icmp(p)
	}
}

// discovery takes a message about neighbours. What is longer than a head is none
// that says anything to us.
func (n *Interface) discovery(f *wire.Frame, message []byte) {
	var p wire.NDP
	if err := p.Parse(f, message); err != nil {
		n.Drop(Drop(err.Error()))
		return
	}
	n.sendNeighbour(n.neighbours.NDP(int64(n.clock.Now), f, &p))
	if n.neighbours.Duplicate() && n.Lost != nil {
		n.Lost(f.Src)
	}
}
