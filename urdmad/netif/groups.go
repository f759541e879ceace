package netif

import (
	"net/netip"

	"urdma/wire"
)

// This file has IPv4 groups: which of them the interface takes, and IGMP, by which
// the link learns of it. A port of datagrams has none: its socket is the kernel's.

// Join has the interface take what is sent to a group, until as many Leaves; false
// where it can't, and then only senders on the same interface are heard.
func (n *Interface) Join(group netip.Addr) bool {
	if !n.info.Wire || n.info.Datagrams {
		return false
	}
	if n.groups == nil {
		n.groups = map[netip.Addr]int{}
	}
	if n.groups[group]++; n.groups[group] == 1 {
		n.sendIGMP(wire.IGMPReport, group)
	}
	return true
}

// Leave undoes Join.
func (n *Interface) Leave(group netip.Addr) {
	switch n.groups[group] {
	case 0:
	case 1:
		delete(n.groups, group)
		n.sendIGMP(wire.IGMPLeave, group)
	default:
		n.groups[group]--
	}
}

// GroupLink is how a group is reached; false if it can't be.
func (n *Interface) GroupLink(group netip.Addr) (Link, bool) {
	if !n.info.Wire || n.info.Datagrams {
		return Link{}, false
	}
	return Link{MAC: wire.GroupMAC(group.As4())}, true
}

func (n *Interface) sendIGMP(kind wire.IGMPType, group netip.Addr) {
	b := n.Alloc()
	if len(b) < wire.IGMPFrameLen {
		return // as if lost: queries ask again
	}
	(&wire.IGMP{Type: kind, Group: group.As4()}).Put(b, wire.MAC(n.info.MAC), n.IP().As4())
	n.commit(wire.IGMPFrameLen)
}

// takes reports whether packets for an address come to us: its own, groups that
// were joined, and, where any was, all hosts, which IGMP asks.
func (n *Interface) takes(dst wire.IPv4) bool {
	a := netip.AddrFrom4(dst)
	return a == n.IP() || len(n.groups) > 0 && (n.groups[a] > 0 || dst == wire.IPv4{224, 0, 0, 1})
}

// igmp answers a query at once: reports of others don't silence ours.
func (n *Interface) igmp(payload []byte) {
	var g wire.IGMP
	if !g.Parse(payload) || g.Type != wire.IGMPQuery {
		return
	}
	for group := range n.groups {
		if asked := netip.AddrFrom4(g.Group); asked == group || g.Group == (wire.IPv4{}) {
			n.sendIGMP(wire.IGMPReport, group)
		}
	}
}
