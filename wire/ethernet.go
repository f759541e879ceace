package wire

import (
	"encoding/binary"
	"encoding/hex"
	"net/netip"
)

// EthernetLen is the length of an untagged Ethernet header.
const EthernetLen = 14

// MaxHeaderLen is enough bytes of a frame to parse every header of a data segment: Ethernet 14, IPv4 with options
// 60, UDP 8, TRP 16, DDP 18 are 116. Behind an IP header without options it also holds the longest RDMAP body that
// is a header itself, Atomic Request or Terminate of 52 bytes: these end at byte 128 with IPv4, and at byte 148
// with IPv6's 40 bytes.
const MaxHeaderLen = 148

// MAC is an Ethernet address.
type MAC [6]byte

// Broadcast is the Ethernet address of every station.
var Broadcast = MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// IsGroup reports whether m is a multicast or broadcast address.
func (m MAC) IsGroup() bool { return m[0]&1 != 0 }

func (m MAC) String() string {
	var s [17]byte
	for i, b := range m {
		if i > 0 {
			s[3*i-1] = ':'
		}
		hex.Encode(s[3*i:], []byte{b})
	}
	return string(s[:])
}

// IPv4 is an IPv4 address in network order.
type IPv4 [4]byte

// IsGroup reports whether a does not belong to a single host: 0.0.0.0/8, multicast, reserved and broadcast (RFC
// 1122 section 3.2.1.3).
func (a IPv4) IsGroup() bool { return a[0] == 0 || a[0] >= 224 }

func (a IPv4) String() string { return netip.AddrFrom4(a).String() }

// EtherType is the protocol of an Ethernet payload.
type EtherType uint16

const (
	EtherTypeIPv4 EtherType = 0x0800
	EtherTypeARP  EtherType = 0x0806
	EtherTypeIPv6 EtherType = 0x86dd

	etherTypeVLAN    EtherType = 0x8100 // IEEE 802.1Q
	etherTypeQinQ    EtherType = 0x88a8 // IEEE 802.1ad
	etherTypeOldQinQ EtherType = 0x9100 // before 802.1ad, still in use
)

// PutEthernet writes the 14 bytes of an Ethernet header.
func PutEthernet(b []byte, dst, src MAC, t EtherType) int {
	_ = b[EthernetLen-1]
	copy(b[0:6], dst[:])
	copy(b[6:12], src[:])
	binary.BigEndian.PutUint16(b[12:], uint16(t))
	return EthernetLen
}
