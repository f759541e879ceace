package wire

import "encoding/binary"

// This file implements membership of IPv4 groups: their Ethernet addresses (RFC 1112 section 6.4) and IGMPv2 (RFC
// 2236).

// ProtoIGMP is the protocol number of IGMP.
const ProtoIGMP = 2

// IGMPType is the kind of an IGMP message.
type IGMPType uint8

// The kinds.
const (
	IGMPQuery  IGMPType = 0x11
	IGMPReport IGMPType = 0x16
	IGMPLeave  IGMPType = 0x17
)

// IGMP is an IGMP message.
type IGMP struct {
	Type  IGMPType
	Group IPv4 // 0 in a general query
}

const (
	igmpLen       = 8
	igmpQuery3Len = 12 // of IGMPv3, without sources
	// IGMPFrameLen is the length of a frame that Put writes: its IPv4 header has the router alert option (RFC
	// 2113).
	IGMPFrameLen = EthernetLen + IPv4Len + 4 + igmpLen
)

// AllRouters is the destination of a leave, AllHosts the group of all hosts of the link.
var (
	AllRouters = IPv4{224, 0, 0, 2}
	AllHosts   = IPv4{224, 0, 0, 1}
)

// GroupMAC is the Ethernet address of a group.
func GroupMAC(group IPv4) MAC { return MAC{1, 0, 0x5e, group[1] & 0x7f, group[2], group[3]} }

// Put writes a whole frame with the message, for all hosts and routers of the link.
func (g *IGMP) Put(b []byte, from MAC, src IPv4) {
	b = b[:IGMPFrameLen]
	clear(b)
	dst := g.Group
	if g.Type == IGMPLeave {
		dst = AllRouters
	}
	ip := b[PutEthernet(b, GroupMAC(dst), from, EtherTypeIPv4):]
	ip[0] = 4<<4 | (IPv4Len+4)/4
	binary.BigEndian.PutUint16(ip[2:], uint16(IPv4Len+4+igmpLen))
	ip[8], ip[9] = 1, ProtoIGMP
	copy(ip[12:], src[:])
	copy(ip[16:], dst[:])
	ip[20], ip[21] = 0x94, 4 // router alert
	binary.BigEndian.PutUint16(ip[10:], ^Fold(Checksum(0, ip[:IPv4Len+4])))
	m := ip[IPv4Len+4:]
	m[0] = byte(g.Type)
	copy(m[4:], g.Group[:])
	binary.BigEndian.PutUint16(m[2:], ^Fold(Checksum(0, m[:igmpLen])))
}

// Parse reads an IGMP message, the whole payload of an IPv4 packet. It returns false for anything else.
func (g *IGMP) Parse(b []byte) bool {
	if len(b) < igmpLen || Fold(Checksum(0, b)) != 0xffff {
		return false
	}
	g.Type = IGMPType(b[0])
	if g.Type == IGMPQuery && len(b) > igmpLen && !hasSources(b, igmpQuery3Len, 4) {
		return false // RFC 3376 section 7.1
	}
	copy(g.Group[:], b[4:])
	return true
}
