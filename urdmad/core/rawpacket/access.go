package rawpacket

import (
	"bytes"
	"encoding/binary"

	"urdma/verbs/abi"
	"urdma/wire"
)

// Further EtherTypes of frames that urdmad, its peers or the link itself act on.
const (
	etherTypeVLAN    = 0x8100 // IEEE 802.1Q
	etherTypePause   = 0x8808 // IEEE 802.3 annex 31A, MAC control
	etherTypeQinQ    = 0x88a8 // IEEE 802.1ad
	etherTypeRoCE    = 0x8915 // RoCE v1
	etherTypeOldQinQ = 0x9100 // before 802.1ad, still in use

	firstEtherType = 0x600 // lower numbers are lengths
)

var (
	// snap is the LLC header before an EtherType in a frame with a length (RFC 1042).
	snap = []byte{0xaa, 0xaa, 0x03}
	// bridges begins the group addresses that bridges do not forward, for their own protocols (IEEE 802.1Q
	// table 8-1); 4 more bits follow.
	bridges = []byte{0x01, 0x80, 0xc2, 0x00, 0x00}
)

// foreign reports whether a frame, of at least an Ethernet header, is of a protocol that neither urdmad nor the
// link speaks. For a port with RAW_NON_IP, only such frames exist.
func foreign(head []byte) bool {
	switch t := binary.BigEndian.Uint16(head[12:]); {
	case t < firstEtherType:
		return !bytes.HasPrefix(head[wire.EthernetLen:], snap)
	default:
		switch t {
		case uint16(wire.EtherTypeIPv4), uint16(wire.EtherTypeIPv6), uint16(wire.EtherTypeARP), etherTypeVLAN,
			etherTypePause, etherTypeQinQ, etherTypeRoCE, etherTypeOldQinQ:
			return false
		}
		return true
	}
}

// toBridge reports whether a frame's destination is a bridge's own protocol.
func toBridge(head []byte) bool { return bytes.HasPrefix(head, bridges) && head[5] < 0x10 }

// maySend reports whether a client may send a frame; mac is the port's Ethernet address.
func maySend(access uint32, frame []byte, mac wire.MAC) bool {
	if len(frame) < wire.EthernetLen {
		return false
	}
	return access == abi.RawAll || access == abi.RawNonIP && wire.MAC(frame[6:12]) == mac && foreign(frame) &&
		!toBridge(frame)
}

// mayReceive reports whether a client may receive a frame; head is its beginning.
func mayReceive(access uint32, head []byte) bool {
	return len(head) >= wire.EthernetLen && (access == abi.RawAll || access == abi.RawNonIP && foreign(head))
}
