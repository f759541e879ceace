package neighbour

import (
	"net/netip"

	"urdma/wire"
)

// This file implements neighbour discovery (RFC 4861), the counterpart of ARP in IPv6. It does not discover
// routers: the gateway is configured.

// retransTimer is how long the probe for our own address waits for an answer (RFC 4861 section 10,
// RETRANS_TIMER; one probe: DupAddrDetectTransmits).
const retransTimer = int64(1e9)

// uniqueness is the state of duplicate address detection (RFC 4862 section 5.4). Until it ends, the address
// is used, but in a way that does not harm a host that has it (RFC 4429, optimistic): solicitations carry
// no Ethernet address, and answers do not override.
type uniqueness struct {
	until int64 // end of the detection; never: not begun, or over
	lost  bool  // another host has the address
}

func (u *uniqueness) tentative() bool { return u.until != never }

// Duplicate reports whether another host has our address: nothing may be sent from it or received for it
// until it is configured again.
func (n *Table) Duplicate() bool { return n.claim.lost }

// probe asks whether another host has our address.
func (n *Table) probe(now int64) []Outgoing {
	if n.claim.lost {
		return nil
	}
	n.claim.until = now + retransTimer
	group := wire.SolicitedNode(n.ip.As16())
	return []Outgoing{{Dst: wire.Group6MAC(group), NDP: wire.NDP{Type: wire.ICMPv6Solicit, Target: n.ip.As16()},
		To: group}}
}

// claimed handles the end of the detection without an answer: it announces the address (RFC 4861 section
// 7.2.6).
func (n *Table) claimed() []Outgoing {
	n.claim.until = never
	o := n.advertise(wire.Group6MAC(wire.AllNodes), wire.AllNodes)
	o.NDP.Solicited = false
	return []Outgoing{o}
}

// GiveUp gives up the address, and all resolutions in progress.
func (n *Table) GiveUp() {
	n.claim = uniqueness{until: never, lost: true}
	for len(n.due) > 0 {
		n.giveUp(n.due[0])
	}
}

// NDP handles a received message, in a frame that f describes.
func (n *Table) NDP(now int64, f *wire.Frame, p *wire.NDP) []Outgoing {
	if n.ip.Is4() || n.ip.IsUnspecified() || n.claim.lost {
		return nil
	}
	// A claim to our address from our own Ethernet address is our own message that a loop returned, or
	// comes from a kernel that shares the interface with us. The kernel at a tap has the same Ethernet
	// address, but is a neighbour.
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

// solicited answers solicitations for our address (RFC 4861 sections 7.2.3 and 7.2.4). A solicitation
// without a source address, from a host whose own address is tentative, is answered to the frame's source.
func (n *Table) solicited(now int64, f *wire.Frame, p *wire.NDP) []Outgoing {
	src := netip.AddrFrom16(f.Src6)
	if netip.AddrFrom16(p.Target) != n.ip || src == n.ip {
		return nil
	}
	if src.IsUnspecified() { // another host probes for our address
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

// advertised handles an advertisement of a known neighbour (RFC 4861 section 7.2.5). One that does not
// override shows only that the neighbour is reachable.
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

// advertise announces our address.
func (n *Table) advertise(to wire.MAC, ip wire.IPv6) Outgoing {
	return Outgoing{Dst: to, From: n.ip.As16(), To: ip, NDP: wire.NDP{Type: wire.ICMPv6Advertise, Solicited: true,
		Override: !n.claim.tentative(), Target: n.ip.As16(), MAC: n.mac, HasMAC: true}}
}

// solicit asks for a neighbour's Ethernet address.
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
