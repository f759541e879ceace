package wire

import (
	"encoding/binary"
	"net/netip"
)

// TCPLen is the length of a TCP header without options.
const TCPLen = 20

// ProtoTCP is the protocol number of TCP.
const ProtoTCP = 6

// Flags of a TCP header.
const (
	TCPFin = 0x01
	TCPPsh = 0x08
	TCPAck = 0x10
)

// TCP is a segment for captures: the kernel's real segments are not visible to us.
type TCP struct {
	SrcMAC, DstMAC MAC
	Src, Dst       netip.AddrPort
	Seq, Ack       uint32
	Flags          uint8
}

// Append appends a frame with the segment and a payload, checksums included.
func (t *TCP) Append(b []byte, payload []byte) []byte {
	start, length := len(b), TCPLen+len(payload)
	v4 := t.Src.Addr().Is4() && t.Dst.Addr().Is4()
	var sum uint64
	if v4 {
		b = append(b, make([]byte, EthernetLen+IPv4Len)...)
		PutEthernet(b[start:], t.DstMAC, t.SrcMAC, EtherTypeIPv4)
		ip := b[start+EthernetLen:]
		ip[0] = 4<<4 | IPv4Len/4
		binary.BigEndian.PutUint16(ip[2:], uint16(IPv4Len+length))
		binary.BigEndian.PutUint16(ip[6:], ipDontFragment)
		ip[8], ip[9] = defaultTTL, ProtoTCP
		src, dst := IPv4(t.Src.Addr().As4()), IPv4(t.Dst.Addr().As4())
		copy(ip[12:], src[:])
		copy(ip[16:], dst[:])
		binary.BigEndian.PutUint16(ip[10:], ^Fold(Checksum(0, ip[:IPv4Len])))
		sum = pseudoIPv4(src, dst, ProtoTCP, length)
	} else {
		b = append(b, make([]byte, EthernetLen+IPv6Len)...)
		PutEthernet(b[start:], t.DstMAC, t.SrcMAC, EtherTypeIPv6)
		src, dst := IPv6(t.Src.Addr().As16()), IPv6(t.Dst.Addr().As16())
		PutIPv6(b[start+EthernetLen:], src, dst, ProtoTCP, length)
		sum = pseudoIPv6(src, dst, ProtoTCP, length)
	}
	at := len(b)
	b = binary.BigEndian.AppendUint16(b, t.Src.Port())
	b = binary.BigEndian.AppendUint16(b, t.Dst.Port())
	b = binary.BigEndian.AppendUint32(b, t.Seq)
	b = binary.BigEndian.AppendUint32(b, t.Ack)
	b = append(b, TCPLen/4<<4, t.Flags, 0xff, 0xff, 0, 0, 0, 0)
	b = append(b, payload...)
	binary.BigEndian.PutUint16(b[at+16:], ^Fold(Checksum(sum, b[at:])))
	return b
}
