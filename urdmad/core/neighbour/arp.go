package neighbour

import (
	"net/netip"

	"urdma/wire"
)

// This file implements ARP (RFC 826), and detects another host with our address (RFC 5227).

// defendInterval is the least time between two announcements that defend our address (RFC 5227 section 1.1,
// DEFEND_INTERVAL).
const defendInterval = int64(10e9)

// Outgoing is a packet to send to an Ethernet address: an ARP packet, or for an IPv6 port a neighbour
// discovery message.
type Outgoing struct {
	Dst wire.MAC
	ARP wire.ARP

	NDP      wire.NDP // its Type is 0 in an ARP packet
	From, To wire.IPv6
}

// ARP handles a received ARP packet (RFC 826, packet reception): it answers requests for our address and
// learns the sender's address.
//
// A request without a sender's address probes whether the address is free (RFC 5227 section 2.1.1): it is
// answered, and nothing is learned.
func (n *Table) ARP(now int64, a *wire.ARP) []Outgoing {
	target, sender := netip.AddrFrom4(a.TargetIP), netip.AddrFrom4(a.SenderIP)
	forUs := target == n.ip
	probe := a.SenderIP == wire.IPv4{}
	switch {
	case !n.ip.Is4() || n.ip.IsUnspecified() || a.SenderMAC.IsGroup() || a.SenderIP.IsGroup() && !probe:
		return nil
	case sender == n.ip:
		return n.contested(now, a.SenderMAC)
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

// contested handles a host at by that uses our address, unless by is ours (a loop returns our own packets).
// We continue to use the address, because connections do (RFC 5227 section 2.4, c), and announce it to
// neighbours.
func (n *Table) contested(now int64, by wire.MAC) []Outgoing {
	if by == n.mac || now < n.defendable {
		return nil
	}
	n.defendable = now + defendInterval
	if n.Contested != nil {
		n.Contested(by)
	}
	return []Outgoing{n.arpRequest(n.ip.As4(), nil)}
}

// announceARP returns the gratuitous ARP of a port that has just come up, preceded by a probe: a host that
// already has our address answers the probe, and only the probe. The port does not wait for that answer.
func (n *Table) announceARP() []Outgoing {
	probe := n.arpRequest(n.ip.As4(), nil)
	probe.ARP.SenderIP = wire.IPv4{}
	return []Outgoing{probe, n.arpRequest(n.ip.As4(), nil)}
}

func (n *Table) arpRequest(ip wire.IPv4, to *wire.MAC) Outgoing {
	if to == nil {
		to = &wire.Broadcast
	}
	return Outgoing{Dst: *to, ARP: wire.ARP{Op: wire.ARPRequest, SenderMAC: n.mac, SenderIP: n.ip.As4(), TargetIP: ip}}
}
