package wire

import "encoding/binary"

// UDPHeaderLen is the length of the Ethernet, IPv4 (without options) and UDP headers.
const UDPHeaderLen = EthernetLen + IPv4Len + UDPLen

// Offsets inside those 42 bytes.
const (
	offIPLen   = EthernetLen + 2
	offIPID    = EthernetLen + 4
	offIPSum   = EthernetLen + 10
	offIPSrc   = EthernetLen + 12
	offIPDst   = EthernetLen + 16
	offUDP     = EthernetLen + IPv4Len
	offUDPLen  = offUDP + 4
	offUDPSum  = offUDP + 6
	defaultTTL = 64 // RFC 1700
)

// MaxUDPPayload is the largest UDP payload of an IPv4 packet without options.
const MaxUDPPayload = 65535 - IPv4Len - UDPLen

// UDPHeader is a connection's Ethernet, IPv4 and UDP headers, built once and patched per packet. The IPv4 checksum
// field holds the folded sum, not complemented, of the fields that don't change.
type UDPHeader [UDPHeaderLen]byte

// Init sets the fields that stay the same for the connection.
func (h *UDPHeader) Init(srcMAC, dstMAC MAC, src, dst IPv4, sport, dport uint16) {
	*h = UDPHeader{}
	PutEthernet(h[:], dstMAC, srcMAC, EtherTypeIPv4)
	ip := h[EthernetLen:]
	ip[0] = 4<<4 | IPv4Len/4
	binary.BigEndian.PutUint16(ip[6:], ipDontFragment)
	ip[8], ip[9] = defaultTTL, ProtoUDP
	copy(ip[12:], src[:])
	copy(ip[16:], dst[:])
	binary.BigEndian.PutUint16(h[offUDP:], sport)
	binary.BigEndian.PutUint16(h[offUDP+2:], dport)
	binary.BigEndian.PutUint16(h[offIPSum:], Fold(Checksum(0, ip[:IPv4Len])))
}

// SetDst changes the Ethernet destination, when the next hop has changed.
func (h *UDPHeader) SetDst(m MAC) { copy(h[0:6], m[:]) }

// SetSource changes the source port number.
func (h *UDPHeader) SetSource(number uint16) { binary.BigEndian.PutUint16(h[offUDP:], number) }

// SetTrafficClass changes the type of service.
func (h *UDPHeader) SetTrafficClass(class uint8) {
	ip := h[EthernetLen:][:IPv4Len]
	ip[1], ip[10], ip[11] = class, 0, 0
	binary.BigEndian.PutUint16(h[offIPSum:], Fold(Checksum(0, ip)))
}

// Dst is the IPv4 destination.
func (h *UDPHeader) Dst() IPv4 { return IPv4(h[offIPDst:offUDP]) }

// Put writes the 42 bytes for a UDP payload of payloadLen bytes (at most
// MaxUDPPayload): lengths, id, don't-fragment, TTL 64, IPv4 checksum. The UDP
// checksum is 0, "none"; SetUDPChecksum fills it once the payload is in place.
func (h *UDPHeader) Put(b []byte, payloadLen int, id uint16) {
	b = b[:UDPHeaderLen]
	copy(b, h[:])
	total := uint32(payloadLen + IPv4Len + UDPLen)
	sum := uint32(binary.BigEndian.Uint16(h[offIPSum:])) + total + uint32(id)
	sum = sum>>16 + sum&0xffff
	sum = sum>>16 + sum&0xffff
	binary.BigEndian.PutUint16(b[offIPLen:], uint16(total))
	binary.BigEndian.PutUint16(b[offIPID:], id)
	binary.BigEndian.PutUint16(b[offIPSum:], ^uint16(sum))
	binary.BigEndian.PutUint16(b[offUDPLen:], uint16(payloadLen+UDPLen))
}

// SetUDPChecksum computes and stores the UDP checksum of a whole frame, IPv4
// without options, from the lengths in its headers. A result of 0 is sent as
// 0xffff (RFC 768).
func SetUDPChecksum(frame []byte) {
	n := int(binary.BigEndian.Uint16(frame[offUDPLen:]))
	udp := frame[offUDP : offUDP+n]
	udp[6], udp[7] = 0, 0
	src, dst := IPv4(frame[offIPSrc:offIPDst]), IPv4(frame[offIPDst:offUDP])
	c := ^Fold(Checksum(pseudoIPv4(src, dst, ProtoUDP, n), udp))
	if c == 0 {
		c = 0xffff
	}
	binary.BigEndian.PutUint16(frame[offUDPSum:], c)
}
