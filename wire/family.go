package wire

import "net/netip"

// IPv6Len is the length of an IPv6 header without extension headers.
const IPv6Len = 40

// IPv6 is an IPv6 address in network order.
type IPv6 [16]byte

func (a IPv6) String() string { return netip.AddrFrom16(a).String() }

// IPLen is the length of the IP header, without options or extension headers,
// that packets from and to an address have.
func IPLen(a netip.Addr) int {
	if a.Is4() {
		return IPv4Len
	}
	return IPv6Len
}
