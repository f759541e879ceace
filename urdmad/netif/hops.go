package netif

import (
	"net/netip"

	"urdma/urdmad/clock"
	"urdma/urdmad/neighbour"
	"urdma/wire"
)

// NextHop is the neighbour to which packets for dst go; false if there is no
// route. It is dst itself on the same link. A link-local address of IPv6 and another
// don't reach each other: answers would find no way (RFC 4291 section 2.5.6).
func (n *Interface) NextHop(dst netip.Addr) (netip.Addr, bool) {
	if !n.info.Wire || dst.Is4() != n.IP().Is4() || dst.IsLinkLocalUnicast() != n.IP().IsLinkLocalUnicast() && !dst.Is4() {
		return netip.Addr{}, false
	}
	if n.addr.Prefix.Contains(dst) {
		return dst, true
	}
	if n.info.Datagrams {
		return n.IP(), true // the kernel's to route
	}
	return n.addr.Gateway, n.addr.Gateway.IsValid()
}

// Resolve calls done with how a neighbour is reached.
func (n *Interface) Resolve(hop netip.Addr, done func(l Link, ok bool)) {
	if n.info.Datagrams {
		done(Link{Port: n.addr.SocketPort}, true)
		return
	}
	n.sendNeighbour(n.neighbours.Resolve(int64(n.clock.Now), hop, func(mac wire.MAC, ok bool) { done(Link{MAC: mac}, ok) }))
}

// Announce tells the link that the interface is up: gratuitous ARP, or the probe for
// an IPv6 address and the group at which it is asked for.
func (n *Interface) Announce() {
	if !n.info.Wire || n.info.Datagrams {
		return
	}
	n.groups.announce()
	n.sendNeighbour(n.neighbours.Announce(int64(n.clock.Now)))
}

func (n *Interface) arp(b []byte) {
	var a wire.ARP
	if _, err := a.Parse(b); err != nil {
		n.Drop(Drop(err.Error()))
		return
	}
	n.sendNeighbour(n.neighbours.ARP(int64(n.clock.Now), &a))
}

// sendNeighbour sends the packets the neighbour table asks for and sets its timer.
func (n *Interface) sendNeighbour(out []neighbour.Outgoing) {
	for i := range out {
		o := &out[i]
		b := n.Alloc()
		if b == nil {
			break // as if lost: the table asks again
		}
		if o.NDP.Type != 0 {
			n.commit(o.NDP.Put(b, n.info.MAC, o.Dst, o.From, o.To))
			continue
		}
		at := wire.PutEthernet(b, o.Dst, n.info.MAC, wire.EtherTypeARP)
		n.commit(at + o.ARP.Put(b[at:]))
	}
	n.clock.Set(n.neighbourTimer, clock.Time(n.neighbours.Deadline()))
}

func (n *Interface) tickNeighbours() { n.sendNeighbour(n.neighbours.Tick(int64(n.clock.Now))) }

// neighbourChanged points the paths by a neighbour to its new address.
func (n *Interface) neighbourChanged(ip netip.Addr, mac wire.MAC) {
	for p := range n.paths[ip] {
		p.setDst(mac)
	}
}

// confirm asks a neighbour whether it is still there.
func (n *Interface) confirm(hop netip.Addr) {
	n.sendNeighbour(n.neighbours.Confirm(int64(n.clock.Now), hop))
}
