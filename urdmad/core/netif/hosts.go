package netif

import (
	"net/netip"

	"urdma/wire"
)

// Hosts are up to so many hosts that have answered.
func (n *Interface) Hosts(most int) (list []netip.Addr) {
	for i := 0; i < n.Neighbours().Len() && len(list) < most; i++ {
		if e := n.Neighbours().At(i); e.Known {
			list = append(list, e.IP)
		}
	}
	if n.mtus == nil {
		return list
	}
	for a := range n.mtus.Peers {
		if len(list) == most {
			break
		}
		list = append(list, a)
	}
	return list
}

// AllHosts is the group of all hosts of the link; false where none reaches them.
func (n *Interface) AllHosts() (group netip.Addr, ok bool) {
	group = netip.AddrFrom4(wire.AllHosts)
	if n.IP().Is6() {
		group = netip.AddrFrom16(wire.AllNodes)
	}
	return group, n.hasGroups(group)
}
