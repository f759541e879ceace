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

// PutUDP writes a frame without Ethernet addresses, whose UDP payload is data, and returns its
// length. IPv6 has no checksum of 0, "none" (RFC 8200 section 8.1).
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
