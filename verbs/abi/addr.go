package abi

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strconv"
	"syscall"
)

// AddrFrom converts a socket address. An IPv4-mapped IPv6 address becomes the IPv4 address; the zero AddrPort
// gets no family. The zone of an IPv6 address must be a number, the index of an interface.
func AddrFrom(p netip.AddrPort) (Addr, error) {
	var a Addr
	binary.BigEndian.PutUint16(a.PortBE[:], p.Port())
	switch ip := p.Addr().Unmap(); {
	case !ip.IsValid():
	case ip.Is4():
		four := ip.As4()
		a.Family = syscall.AF_INET
		copy(a.Addr[:], four[:])
	default:
		a.Family, a.Addr = syscall.AF_INET6, ip.As16()
		if zone := ip.Zone(); zone != "" {
			n, err := strconv.ParseUint(zone, 10, 32)
			if err != nil {
				return Addr{}, fmt.Errorf("abi: zone %q of %s: expected the index of an interface", zone, ip)
			}
			a.ScopeID = uint32(n)
		}
	}
	return a, nil
}

// Port returns the port number.
func (a Addr) Port() uint16 { return binary.BigEndian.Uint16(a.PortBE[:]) }

// AddrPort is the inverse of AddrFrom. An address without a family, or of a family other than IPv4 and IPv6,
// yields a port number without an address.
func (a Addr) AddrPort() netip.AddrPort {
	var ip netip.Addr
	switch a.Family {
	case syscall.AF_INET:
		ip = netip.AddrFrom4([4]byte(a.Addr[:4]))
	case syscall.AF_INET6:
		ip = netip.AddrFrom16(a.Addr)
		if a.ScopeID != 0 {
			ip = ip.WithZone(strconv.FormatUint(uint64(a.ScopeID), 10))
		}
	}
	return netip.AddrPortFrom(ip, a.Port())
}
