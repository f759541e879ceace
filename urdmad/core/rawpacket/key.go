package rawpacket

import (
	"encoding/binary"

	"urdma/verbs/abi"
	"urdma/wire"
)

// Positions in a key; struct urdma_abi_create_flow in urdma_abi.h describes it.
const (
	atType  = 12
	atVLAN  = 14
	atL3    = 16
	atPorts = 56
)

// key has the header fields of a frame that flows are compared with, or the bits of a flow.
type key [abi.FlowKey / 8]uint64

// keyOf returns the key with these bytes.
func keyOf(b *[abi.FlowKey]byte) (k key) {
	for i := range k {
		k[i] = binary.NativeEndian.Uint64(b[8*i:])
	}
	return k
}

// fields reads the header fields of a frame, and the headers that it has (enum urdma_abi_flow_layers). head is
// a copy of the frame's beginning that nobody changes, at least an Ethernet header.
func fields(head []byte) (k key, layers uint32) {
	var b [abi.FlowKey]byte
	copy(b[:atType], head)
	kind, rest := binary.BigEndian.Uint16(head[atType:]), head[wire.EthernetLen:]
	for isVLAN(kind) && len(rest) >= 4 {
		layers |= abi.FlowVLAN
		copy(b[atVLAN:], rest[:2])
		kind, rest = binary.BigEndian.Uint16(rest[2:]), rest[4:]
	}
	binary.BigEndian.PutUint16(b[atType:], kind)
	switch wire.EtherType(kind) {
	case wire.EtherTypeIPv4:
		layers |= ipv4(&b, rest)
	case wire.EtherTypeIPv6:
		layers |= ipv6(&b, rest)
	}
	return keyOf(&b), layers
}

func isVLAN(kind uint16) bool {
	return kind == etherTypeVLAN || kind == etherTypeQinQ || kind == etherTypeOldQinQ
}

// ipv4 reads an IPv4 header (RFC 791), and the port numbers behind it unless they are in another fragment.
func ipv4(b *[abi.FlowKey]byte, p []byte) (layers uint32) {
	if len(p) < wire.IPv4Len || p[0]>>4 != 4 || p[0]&15 < wire.IPv4Len/4 {
		return 0
	}
	to := b[atL3:]
	copy(to, p[12:20])
	to[8], to[9], to[10], to[11] = p[9], p[1], p[8], p[6]>>5
	layers = abi.FlowIPv4
	if header := int(p[0]&15) * 4; len(p) > header && binary.BigEndian.Uint16(p[6:])&0x1fff == 0 {
		layers |= ports(b, p[9], p[header:])
	}
	return layers
}

// ipv6 reads an IPv6 header (RFC 8200), and the port numbers if they follow it without extension headers.
func ipv6(b *[abi.FlowKey]byte, p []byte) (layers uint32) {
	if len(p) < wire.IPv6Len || p[0]>>4 != 6 {
		return 0
	}
	to := b[atL3:]
	copy(to, p[8:40])
	first := binary.BigEndian.Uint32(p)
	binary.BigEndian.PutUint32(to[32:], first&0xfffff)
	to[36], to[37], to[38] = p[6], byte(first>>20), p[7]
	return abi.FlowIPv6 | ports(b, p[6], p[wire.IPv6Len:])
}

// ports reads the port numbers of TCP and UDP.
func ports(b *[abi.FlowKey]byte, proto uint8, p []byte) (layers uint32) {
	switch {
	case len(p) < 4:
		return 0
	case proto == wire.ProtoTCP:
		layers = abi.FlowTCP
	case proto == wire.ProtoUDP:
		layers = abi.FlowUDP
	default:
		return 0
	}
	copy(b[atPorts:], p[2:4])
	copy(b[atPorts+2:], p[:2])
	return layers
}
