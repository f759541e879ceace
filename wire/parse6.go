package wire

import (
	"encoding/binary"
	"net/netip"
)

// parseIPv6 reads the IPv6 header at the start of b. f.PayloadLen bytes of the frame follow the Ethernet header; b
// holds the first of them.
func (f *Frame) parseIPv6(b []byte) error {
	if f.PayloadLen < IPv6Len {
		return ErrIPv6Short
	}
	if b[0]>>4 != 6 {
		return ErrIPv6Version
	}
	length := int(binary.BigEndian.Uint16(b[4:]))
	if length > f.PayloadLen-IPv6Len {
		return ErrIPv6Length
	}
	proto, skipped, err := skipExtensions(b[6], b[IPv6Len:], length)
	if err != nil {
		return err
	}
	f.IPHeaderOff, f.IPHeaderLen = EthernetLen, IPv6Len+skipped
	f.Proto, f.TTL = proto, b[7]
	f.Src6, f.Dst6 = IPv6(b[8:24]), IPv6(b[24:40])
	f.PayloadOff += IPv6Len + skipped
	f.PayloadLen = length - skipped
	if f.Proto == ProtoUDP {
		return f.parseUDP(b[IPv6Len+skipped:])
	}
	return nil
}

// Addrs returns the frame's addresses with its UDP port numbers, 0 if it has none. Both are invalid if the frame is
// no IP packet.
func (f *Frame) Addrs() (src, dst netip.AddrPort) {
	switch f.Type {
	case EtherTypeIPv4:
		return netip.AddrPortFrom(netip.AddrFrom4(f.SrcIP), f.SrcPort),
			netip.AddrPortFrom(netip.AddrFrom4(f.DstIP), f.DstPort)
	case EtherTypeIPv6:
		return netip.AddrPortFrom(netip.AddrFrom16(f.Src6), f.SrcPort),
			netip.AddrPortFrom(netip.AddrFrom16(f.Dst6), f.DstPort)
	}
	return src, dst
}
