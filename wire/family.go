package wire

import "net/netip"

// IPv6Len is the length of an IPv6 header without extension headers.
const IPv6Len = 40

// IPv6 is an IPv6 address in network order.
type IPv6 [16]byte

func (a IPv6) String() string { return netip.AddrFrom16(a).String() }

// IPLen is the length of the IP header for an address's family, without options or extension headers.
func IPLen(a netip.Addr) int {
	if a.Is4() {
		return IPv4Len
	}
	return IPv6Len
}

// PutUDP writes a frame with UDP payload data and empty Ethernet addresses, and returns its length. Over IPv6 the
// checksum is computed, as 0, "none", is not allowed there (RFC 8200 section 8.1).
func PutUDP(b []byte, src, dst netip.AddrPort, data []byte) int {
	if src.Addr().Is4() {
		var h UDPHeader
		h.Init(MAC{}, MAC{}, src.Addr().As4(), dst.Addr().As4(), src.Port(), dst.Port())
		h.Put(b, len(data), 0)
		return len(h) + copy(b[len(h):], data)
	}
	var h UDP6Header
	h.Init(MAC{}, MAC{}, src.Addr().As16(), dst.Addr().As16(), src.Port(), dst.Port())
	h.Put(b, len(data))
	n := len(h) + copy(b[len(h):], data)
	SetUDP6Checksum(b[:n])
	return n
}
