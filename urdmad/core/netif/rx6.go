package netif

import (
	"net/netip"

	"urdma/dpdk/port"
	"urdma/wire"
)

// This file processes received IPv6 packets.

// host6 is an interface as an IPv6 host.
type host6 struct {
	n   *Interface
	own map[wire.IPv6]bool // addresses of this machine's ports
}

// frame handles a frame with an IPv6 packet; it returns true for a datagram to be returned by Next.
func (h *host6) frame(f *wire.Frame, head []byte, p *port.Packet) bool {
	n := h.n
	switch {
	case !h.takes(f.Dst6):
	case n.neighbours.table.Duplicate():
		n.Drop(DropDuplicate)
	case f.Proto == wire.ProtoICMPv6:
		h.icmp(f, head, p)
	case f.Proto != wire.ProtoUDP:
	case !p.Flags.Has(port.RxInside) && h.martian(f.Src6):
		n.Drop(DropSource6)
	case !h.checksumRight(f, p):
		n.Drop(DropChecksum)
	default:
		n.datagram(f, netip.AddrFrom16(f.Src6), netip.AddrFrom16(f.Dst6), head, p)
		return true
	}
	return false
}

// takes reports whether we receive packets to an address: our own address, its solicited-node group, the
// all-nodes group, and joined groups.
func (h *host6) takes(dst wire.IPv6) bool {
	n := h.n
	a := netip.AddrFrom16(dst)
	return a == n.IP() && !a.IsUnspecified() || n.IP().Is6() && (n.groups.joined[a] != nil || dst == wire.AllNodes)
}

// martian reports an address that no other host has (RFC 4291 section 2.5.3, 2.7): the unspecified address,
// a group, an address of this machine, or an IPv4-mapped address.
func (h *host6) martian(src wire.IPv6) bool {
	a := netip.AddrFrom16(src)
	return src.IsGroup() || a.IsLoopback() || a.Is4In6() || h.own[src]
}

// checksumRight verifies a UDP checksum unless the port has. IPv6 requires a checksum.
func (h *host6) checksumRight(f *wire.Frame, p *port.Packet) bool {
	if p.Flags&port.RxUDPBad != 0 {
		return false
	}
	return p.Flags.Has(port.RxUDPGood) && f.UDPChecksum != 0 || h.n.udpChecksumRight(f, p)
}

// icmp answers neighbour solicitations for us, group queries and echo requests. Errors and router
// advertisements are ignored: the MTU is the link's, and the gateway is configured.
func (h *host6) icmp(f *wire.Frame, head []byte, p *port.Packet) {
	message := h.n.message(f, head, p)
	if len(message) == 0 {
		return
	}
	switch message[0] {
	case wire.ICMPv6Solicit, wire.ICMPv6Advertise:
		h.n.neighbours.discovery(f, message)
	case wire.ICMPv6MLDQuery:
		h.n.groups.query6(f, message)
	case wire.ICMPv6EchoRequest:
		if h.n.Kernel != nil {
			return // the kernel answers
		}
		if h.martian(f.Src6) {
			h.n.Drop(DropSource6)
			return
		}
		h.n.icmp(f, p)
	}
}
