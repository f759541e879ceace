package neighbour

import (
	"net/netip"

	"urdma/wire"
)

// This file is neighbour discovery (RFC 4861): what ARP is to IPv4. Routers are not
// looked for: the gateway is configured.

// retransTimer is how long the probe for our own address waits for an answer
// (RFC 4861 section 10, RETRANS_TIMER; one probe: DupAddrDetectTransmits).
const retransTimer = int64(1e9)

// uniqueness is duplicate address detection (RFC 4862 section 5.4). Until it is over
// the address is used already, but in a way that harms nobody who has it (RFC 4429,
// optimistic): solicitations carry no Ethernet address, and answers override none.
type uniqueness struct {
	until int64 // that it takes; never: not begun, or over
	lost  bool  // another host has the address
}

func (u *uniqueness) tentative() bool { return u.until != never }

// Duplicate reports that another host has our address: nothing may be sent from it,
// nor taken for it, until it is configured anew.
func (n *Table) Duplicate() bool { return n.claim.lost }

// probe asks whether somebody has our address.
func (n *Table) probe(now int64) []Outgoing {
	if n.claim.lost {
		return nil
	}
	n.claim.until = now + retransTimer
	group := wire.SolicitedNode(n.ip.As16())
	return []Outgoing{{Dst: wire.Group6MAC(group), NDP: wire.NDP{Type: wire.ICMPv6Solicit, Target: n.ip.As16()}, To: group}}
}

// claimed: nobody has it. Neighbours learn where it is (RFC 4861 section 7.2.6).
func (n *Table) claimed() []Outgoing {
	n.claim.until = never
	o := n.advertise(wire.Group6MAC(wire.AllNodes), wire.AllNodes)
	o.NDP.Solicited = false
	return []Outgoing{o}
}

// GiveUp gives the address up, and with it all that wait for neighbours.
func (n *Table) GiveUp() {
	n.claim = uniqueness{until: never, lost: true}
	for len(n.due) > 0 {
		n.giveUp(n.due[0])
	}
}

// NDP takes a message from the wire, of a frame that f describes.
func (n *Table) NDP(now int64, f *wire.Frame, p *wire.NDP) []Outgoing {
	if n.ip.Is4() || n.ip.IsUnspecified() || n.claim.lost {
		return nil
	}
	// A claim to our address from our own Ethernet address is our own that a loop
	// brought back, or that of a kernel which has the interface with us. The kernel
	// behind a tap has the same Ethernet address and is a neighbour.
	claims := netip.AddrFrom16(p.Target) == n.ip && (p.Type == wire.ICMPv6Advertise || f.Src6 == wire.IPv6{})
	if claims && f.Src == n.mac {
		return nil
	}
	if p.Type == wire.ICMPv6Solicit {
		return n.solicited(now, f, p)
	}
	n.advertised(now, p)
	return nil
}

// solicited answers solicitations for our address (RFC 4861 sections 7.2.3 and 7.2.4). One
// without a source address, as hosts send whose own is tentative, is answered to where the
// frame came from.
func (n *Table) solicited(now int64, f *wire.Frame, p *wire.NDP) []Outgoing {
	src := netip.AddrFrom16(f.Src6)
	if netip.AddrFrom16(p.Target) != n.ip || src == n.ip {
		return nil
	}
	if src.IsUnspecified() { // somebody wants to have our address
		if n.claim.tentative() {
			n.GiveUp()
			return nil
		}
		o := n.advertise(wire.Group6MAC(wire.AllNodes), wire.AllNodes)
		o.NDP.Solicited = false
		return []Outgoing{o}
	}
	to := f.Src
	if p.HasMAC {
		to = p.MAC
		n.meet(now, src, p.MAC, true)
	}
	return []Outgoing{n.advertise(to, f.Src6)}
}

// advertised takes an answer, or news of a neighbour that we know of (RFC 4861
// section 7.2.5). One that does not override shows only that somebody is there.
func (n *Table) advertised(now int64, p *wire.NDP) {
	target := netip.AddrFrom16(p.Target)
	if target == n.ip {
		if n.claim.tentative() {
			n.GiveUp()
		}
		return
	}
	e := n.entries[target]
	switch {
	case e == nil || !e.known && !p.HasMAC:
	case !e.known || p.HasMAC && p.Override:
		n.learn(now, e, p.MAC)
	case p.Solicited && (!p.HasMAC || p.MAC == e.mac):
		n.learn(now, e, e.mac)
	}
}

// advertise says where we are.
func (n *Table) advertise(to wire.MAC, ip wire.IPv6) Outgoing {
	return Outgoing{Dst: to, From: n.ip.As16(), To: ip, NDP: wire.NDP{Type: wire.ICMPv6Advertise, Solicited: true,
		Override: !n.claim.tentative(), Target: n.ip.As16(), MAC: n.mac, HasMAC: true}}
}

// solicit asks for a neighbour.
func (n *Table) solicit(ip wire.IPv6, to *wire.MAC) Outgoing {
	o := Outgoing{From: n.ip.As16(), NDP: wire.NDP{Type: wire.ICMPv6Solicit, Target: ip}}
	if !n.claim.tentative() {
		o.NDP.MAC, o.NDP.HasMAC = n.mac, true
	}
	if o.To = ip; to != nil {
		o.Dst = *to
		return o
	}
	o.To = wire.SolicitedNode(ip)
	o.Dst = wire.Group6MAC(o.To)
	return o
}
