// Package grh reads what stands in front of a datagram's message (struct ibv_grh), and
// the addresses that GIDs are, as RoCEv2 has both.
//
// The package must not know queue pairs, or what a message says.
package grh

import (
	"fmt"
	"net/netip"
	"syscall"
)

// Len is the room in front of a message, in bytes.
const Len = 40

// ipv4 is where an IPv4 header begins.
const ipv4 = 20

// Header is what can be read in front of a datagram.
type Header struct {
	Src, Dst               netip.Addr
	HopLimit, TrafficClass uint8 // or the IPv4 TTL and TOS
}

// Parse reads the first Len bytes of a receive: an IPv6 header, or 20 bytes of nothing
// and an IPv4 header. The error is EINVAL for fewer bytes, EPROTONOSUPPORT for another
// header.
func Parse(b []byte) (Header, error) {
	if len(b) < Len {
		return Header{}, fmt.Errorf("verbs: %d bytes of a global routing header, expected %d: %w", len(b), Len, syscall.EINVAL)
	}
	if b[0]>>4 == 6 {
		return Header{Src: netip.AddrFrom16([16]byte(b[8:24])), Dst: netip.AddrFrom16([16]byte(b[24:40])), HopLimit: b[7],
			TrafficClass: b[0]<<4 | b[1]>>4}, nil
	}
	ip := b[ipv4:Len]
	if ip[0] != 4<<4|5 {
		return Header{}, fmt.Errorf("verbs: header that begins with 0x%02x in front of a datagram, expected IPv4's 0x45: %w",
			ip[0], syscall.EPROTONOSUPPORT)
	}
	return Header{Src: netip.AddrFrom4([4]byte(ip[12:16])), Dst: netip.AddrFrom4([4]byte(ip[16:20])), HopLimit: ip[8],
		TrafficClass: ip[1]}, nil
}

// Address is the IP address that a GID is; false for none. What group of IPv4 a GID of
// a group stands for, on a port with such an address, urdmad knows.
func Address(gid netip.Addr) (netip.Addr, bool) {
	gid = gid.WithZone("").Unmap()
	return gid, gid.IsValid() && !gid.IsUnspecified()
}
