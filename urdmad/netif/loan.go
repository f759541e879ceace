package netif

import (
	"net/netip"

	"urdma/dpdk/port"
	"urdma/wire"
)

// This file is for packets between two workers of a urdmad whose payload stays in its sender's
// memory (port.Loan). Their headers are those of the part that is copied.

// Loan is such a payload.
type Loan = port.Loan

// Reads notes which payload is being read from now on; nil: none.
func (n *Interface) Reads(l *Loan) { n.reads = l }

// Reading reports whether the byte at addr is of the payload being read.
func (n *Interface) Reading(addr uintptr) bool { return n.reads != nil && n.reads.Contains(addr) }

// joined is a packet with its payload, for a tap.
func (n *Interface) joined(p *port.Packet) []byte {
	if p.Loan == nil || p.Loan.Over() {
		return p.Data
	}
	n.tx.joined = append(append(n.tx.joined[:0], p.Data...), p.Loan.Bytes...)
	return n.tx.joined
}

// whole is the frame that a tap is shown of a packet: with its payload, and headers that say so.
func (n *Interface) whole(p *port.Packet) []byte {
	if p.Loan == nil {
		return p.Data
	}
	var f wire.Frame
	var head [wire.MaxHeaderLen]byte
	all := n.joined(p)
	if f.Parse(head[:copy(head[:], p.Data)], len(p.Data)) != nil {
		return p.Data
	}
	src, dst := netip.AddrFrom4(f.SrcIP), netip.AddrFrom4(f.DstIP)
	if f.Type == wire.EtherTypeIPv6 {
		src, dst = netip.AddrFrom16(f.Src6), netip.AddrFrom16(f.Dst6)
	}
	if size := wire.UDP6HeaderLen + len(all); len(n.shown) < size {
		n.shown = make([]byte, size)
	}
	size := wire.PutUDP(n.shown, netip.AddrPortFrom(src, f.SrcPort), netip.AddrPortFrom(dst, f.DstPort), all[f.PayloadOff:])
	wire.PutEthernet(n.shown, f.Dst, f.Src, f.Type)
	return n.shown[:size]
}
