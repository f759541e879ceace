package neighbour

import (
	"net/netip"

	"urdma/wire"
)

// This file is ARP (RFC 826).

// Outgoing is a packet to send to an Ethernet address: an ARP packet, or in the
// table of an IPv6 port a message of neighbour discovery.
type Outgoing struct {
	Dst wire.MAC
	ARP wire.ARP

	NDP      wire.NDP // its Type is 0 if this is an ARP packet
	From, To wire.IPv6
}

// ARP takes an ARP packet from the wire (RFC 826, packet reception): it answers
// requests for our address and learns who spoke to us.
//
// A request without a sender's address is a probe, whether the address is free
// (RFC 5227 section 2.1.1): it is answered, and there is nothing to learn.
func (n *Table) ARP(now int64, a *wire.ARP) []Outgoing {
	target, sender := netip.AddrFrom4(a.TargetIP), netip.AddrFrom4(a.SenderIP)
	forUs := target == n.ip
	probe := a.SenderIP == wire.IPv4{}
	if !n.ip.Is4() || sender == n.ip || a.SenderMAC.IsGroup() || a.SenderIP.IsGroup() && !probe {
		return nil
	}
	if !probe {
		n.meet(now, sender, a.SenderMAC, forUs)
	}
	if !forUs || a.Op != wire.ARPRequest {
		return nil
	}
	return []Outgoing{{Dst: a.SenderMAC, ARP: wire.ARP{Op: wire.ARPReply, SenderMAC: n.mac, SenderIP: n.ip.As4(),
		TargetMAC: a.SenderMAC, TargetIP: a.SenderIP}}}
}

// announceARP is the gratuitous ARP of a port that has just come up.
func (n *Table) announceARP() []Outgoing {
	return []Outgoing{n.arpRequest(n.ip.As4(), nil)}
}

func (n *Table) arpRequest(ip wire.IPv4, to *wire.MAC) Outgoing {
	if to == nil {
		to = &wire.Broadcast
	}
	return Outgoing{Dst: *to, ARP: wire.ARP{Op: wire.ARPRequest, SenderMAC: n.mac, SenderIP: n.ip.As4(), TargetIP: ip}}
}
