package wire

import "encoding/binary"

// UDP6HeaderLen is Ethernet, IPv6 without extension headers, and UDP.
const UDP6HeaderLen = EthernetLen + IPv6Len + UDPLen

// Offsets inside those 62 bytes.
const (
	off6Len    = EthernetLen + 4
	off6Src    = EthernetLen + 8
	off6Dst    = EthernetLen + 24
	off6UDP    = EthernetLen + IPv6Len
	off6UDPLen = off6UDP + 4
	off6UDPSum = off6UDP + 6
)

// UDP6Header is a connection's Ethernet, IPv6 and UDP headers, built once and
// patched per packet.
type UDP6Header [UDP6HeaderLen]byte

// Init sets the fields that stay the same for the connection.
func (h *UDP6Header) Init(srcMAC, dstMAC MAC, src, dst IPv6, sport, dport uint16) {
	*h = UDP6Header{}
	PutIPv6(h[PutEthernet(h[:], dstMAC, srcMAC, EtherTypeIPv6):], src, dst, ProtoUDP, 0)
	binary.BigEndian.PutUint16(h[off6UDP:], sport)
	binary.BigEndian.PutUint16(h[off6UDP+2:], dport)
}

// SetDst changes the Ethernet destination, when the next hop has changed.
func (h *UDP6Header) SetDst(m MAC) { copy(h[0:6], m[:]) }

// SetSource changes the source port number.
func (h *UDP6Header) SetSource(number uint16) { binary.BigEndian.PutUint16(h[off6UDP:], number) }

// SetTrafficClass changes the traffic class.
func (h *UDP6Header) SetTrafficClass(class uint8) {
	ip := h[EthernetLen:]
	ip[0], ip[1] = 6<<4|class>>4, class<<4|ip[1]&15
}

// Dst is the IPv6 destination.
func (h *UDP6Header) Dst() IPv6 { return IPv6(h[off6Dst:off6UDP]) }

// Put writes the 62 bytes for a UDP payload of payloadLen bytes. The UDP checksum is 0 until SetUDP6Checksum fills
// it in.
func (h *UDP6Header) Put(b []byte, payloadLen int) {
	b = b[:UDP6HeaderLen]
	copy(b, h[:])
	binary.BigEndian.PutUint16(b[off6Len:], uint16(payloadLen+UDPLen))
	binary.BigEndian.PutUint16(b[off6UDPLen:], uint16(payloadLen+UDPLen))
}

// SetUDP6Checksum computes and stores the UDP checksum of a whole frame, IPv6 without
// extension headers, from the lengths in its headers. A result of 0 is sent as 0xffff
// (RFC 8200 section 8.1).
func SetUDP6Checksum(frame []byte) {
	n := int(binary.BigEndian.Uint16(frame[off6UDPLen:]))
	udp := frame[off6UDP : off6UDP+n]
	udp[6], udp[7] = 0, 0
	c := ^Fold(Checksum(pseudoIPv6(IPv6(frame[off6Src:off6Dst]), IPv6(frame[off6Dst:off6UDP]), ProtoUDP, n), udp))
	if c == 0 {
		c = 0xffff
	}
	binary.BigEndian.PutUint16(frame[off6UDPSum:], c)
}

// PutIPv6 writes an IPv6 header with hop limit 64, traffic class 0 and flow label 0, for length bytes of the
// protocol next, and returns the header's length.
func PutIPv6(b []byte, src, dst IPv6, next uint8, length int) int {
	b = b[:IPv6Len]
	binary.BigEndian.PutUint32(b, 6<<28)
	binary.BigEndian.PutUint16(b[4:], uint16(length))
	b[6], b[7] = next, defaultTTL
	copy(b[8:], src[:])
	copy(b[24:], dst[:])
	return IPv6Len
}

// pseudoIPv6 is the sum of the pseudo header of RFC 8200 section 8.1.
func pseudoIPv6(src, dst IPv6, next uint8, length int) uint64 {
	sum := Checksum(Checksum(0, src[:]), dst[:])
	return addUint16(addUint16(sum, uint16(next)), uint16(length))
}
