package wire

import "encoding/binary"

// IPv4, UDP and TCP numbers.
const (
	IPv4Len   = 20 // without options
	UDPLen    = 8
	TCPLen    = 20 // without options
	ProtoICMP = 1
	ProtoTCP  = 6
	ProtoUDP  = 17
)

const (
	ipMoreFragments  = 0x2000
	ipFragmentOffset = 0x1fff
	ipDontFragment   = 0x4000
)

// Frame is the parsed outer part of an Ethernet frame. It has no pointers. Type and Proto say which fields below
// Type are valid.
type Frame struct {
	Dst, Src MAC
	Type     EtherType

	// Valid if Type is EtherTypeIPv4 or EtherTypeIPv6.
	IPHeaderOff int // always EthernetLen
	IPHeaderLen int // 20 to 60, options included; 40 to 80 with extension headers
	Proto       uint8
	TTL         uint8 // or hop limit
	SrcIP       IPv4  // of IPv4
	DstIP       IPv4
	Src6, Dst6  IPv6 // of IPv6

	// Valid if Proto is ProtoUDP too.
	SrcPort     uint16
	DstPort     uint16
	UDPChecksum uint16 // 0: the sender did not compute it (RFC 768)

	// The payload of the innermost parsed header: UDP payload, payload of another IP protocol, or all behind the
	// Ethernet header. The IP and UDP lengths bound it, so it has no Ethernet padding.
	PayloadOff int
	PayloadLen int
}

// Parse reads the outer headers of a frame of frameLen bytes. hdr holds the first min(frameLen, MaxHeaderLen) bytes
// or more, and may be a private copy of the frame's beginning. Lengths are checked exactly, checksums not at all.
// An EtherType other than IP's is no error.
func (f *Frame) Parse(hdr []byte, frameLen int) error {
	if frameLen < EthernetLen {
		return ErrFrameShort
	}
	if len(hdr) < min(frameLen, MaxHeaderLen) {
		return ErrHeaderCopy
	}
	*f = Frame{} // not a composite literal: see the package comment
	f.Dst, f.Src = MAC(hdr[0:6]), MAC(hdr[6:12])
	f.Type = EtherType(binary.BigEndian.Uint16(hdr[12:]))
	f.PayloadOff, f.PayloadLen = EthernetLen, frameLen-EthernetLen
	switch f.Type {
	case EtherTypeIPv4:
		return f.parseIPv4(hdr[EthernetLen:min(len(hdr), frameLen)])
	case EtherTypeIPv6:
		return f.parseIPv6(hdr[EthernetLen:min(len(hdr), frameLen)])
	case etherTypeVLAN, etherTypeQinQ, etherTypeOldQinQ:
		return ErrVLAN
	}
	return nil
}

// parseIPv4 reads the IPv4 header at the start of b. f.PayloadLen bytes of the frame follow the Ethernet header; b
// holds the first of them.
func (f *Frame) parseIPv4(b []byte) error {
	if f.PayloadLen < IPv4Len {
		return ErrIPv4Short
	}
	if b[0]>>4 != 4 {
		return ErrIPv4Version
	}
	header := int(b[0]&0xf) * 4
	total := int(binary.BigEndian.Uint16(b[2:]))
	if header < IPv4Len || header > total {
		return ErrIPv4HeaderLen
	}
	if total > f.PayloadLen {
		return ErrIPv4TotalLen
	}
	if binary.BigEndian.Uint16(b[6:])&(ipMoreFragments|ipFragmentOffset) != 0 {
		return ErrIPv4Fragment
	}
	f.IPHeaderOff, f.IPHeaderLen = EthernetLen, header
	f.TTL, f.Proto = b[8], b[9]
	f.SrcIP, f.DstIP = IPv4(b[12:16]), IPv4(b[16:20])
	f.PayloadOff += header
	f.PayloadLen = total - header
	if f.Proto == ProtoUDP {
		return f.parseUDP(b[header:])
	}
	return nil
}

// parseUDP reads the UDP header at the start of b. A UDP length shorter than the IP payload is legal (RFC 768), a
// longer one is not.
func (f *Frame) parseUDP(b []byte) error {
	if f.PayloadLen < UDPLen {
		return ErrUDPShort
	}
	length := int(binary.BigEndian.Uint16(b[4:]))
	if length < UDPLen || length > f.PayloadLen {
		return ErrUDPLength
	}
	f.SrcPort = binary.BigEndian.Uint16(b[0:])
	f.DstPort = binary.BigEndian.Uint16(b[2:])
	f.UDPChecksum = binary.BigEndian.Uint16(b[6:])
	f.PayloadOff += UDPLen
	f.PayloadLen = length - UDPLen
	return nil
}

// VerifyIPv4Checksum reports whether an IPv4 header with its options has a correct checksum (RFC 791 section 3.1).
// ipHeader is exactly the header: Frame.IPHeaderLen bytes from Frame.IPHeaderOff.
func VerifyIPv4Checksum(ipHeader []byte) bool {
	return len(ipHeader) >= IPv4Len && Fold(Checksum(0, ipHeader)) == 0xffff
}

// VerifyUDPChecksum reports whether udp, the datagram of f from its header to the end of its payload, has a correct
// checksum. 0 means that the sender computed none: correct over IPv4 (RFC 768), wrong over IPv6 (RFC 8200 section
// 8.1).
func VerifyUDPChecksum(f *Frame, udp []byte) bool {
	if len(udp) != UDPLen+f.PayloadLen {
		return false
	}
	if f.UDPChecksum == 0 {
		return f.Type != EtherTypeIPv6
	}
	return Fold(Checksum(f.pseudo(len(udp)), udp)) == 0xffff
}

// UnfinishedUDPChecksum reports whether f's UDP checksum covers only the pseudo header, uncomplemented. Linux and
// virtual machines leave such a sum for a network card to complete (CHECKSUM_PARTIAL). It does not cover the
// payload.
func UnfinishedUDPChecksum(f *Frame) bool {
	return f.UDPChecksum == Fold(f.pseudo(UDPLen+f.PayloadLen))
}

// UnfinishedChecksum finds the unfinished checksum of a whole TCP or UDP frame. The checksum must cover the frame
// from byte from on, and stands at bytes behind from. from is 0 if the checksum is complete or the frame has none.
func UnfinishedChecksum(frame []byte) (from, at int) {
	var f Frame
	if f.Parse(frame, len(frame)) != nil || f.Type != EtherTypeIPv4 && f.Type != EtherTypeIPv6 {
		return 0, 0
	}
	length := f.PayloadLen
	switch {
	case f.Proto == ProtoUDP:
		from, at, length = f.PayloadOff-UDPLen, 6, UDPLen+length
	case f.Proto == ProtoTCP && length >= TCPLen:
		from, at = f.PayloadOff, 16
	default:
		return 0, 0
	}
	if binary.BigEndian.Uint16(frame[from+at:]) != Fold(f.pseudo(length)) {
		return 0, 0
	}
	return from, at
}

// pseudo is the sum of the pseudo header of f's packet.
func (f *Frame) pseudo(length int) uint64 {
	if f.Type == EtherTypeIPv6 {
		return pseudoIPv6(f.Src6, f.Dst6, f.Proto, length)
	}
	return pseudoIPv4(f.SrcIP, f.DstIP, f.Proto, length)
}

// pseudoIPv4 is the sum of the pseudo header of RFC 768 and RFC 9293 section 3.1.
func pseudoIPv4(src, dst IPv4, proto uint8, length int) uint64 {
	sum := uint64(binary.LittleEndian.Uint32(src[:])) + uint64(binary.LittleEndian.Uint32(dst[:]))
	return addUint16(addUint16(sum, uint16(proto)), uint16(length))
}
