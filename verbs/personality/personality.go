// Package personality has the table of the ways in which a port is shown to programs, and the table of profiles,
// adapters as which devices are shown. The wire is the same for each; names, node type, link layer, LID and GIDs
// differ.
//
// It knows libibverbs' numbers and the names in urdma.json and sysfs, and no port, packet or client.
package personality

import (
	"encoding/binary"
	"net/netip"

	"urdma/verbs/abi"
)

// Names of the personalities, as in urdma.json and URDMA_TRANSPORT.
const (
	IWARP = "iwarp"
	IB    = "ib"
	RoCE  = "roce"
)

// Personality is a row of the table.
type Personality struct {
	Name          string
	Transport     uint32 // abi.TransportIWARP, …
	NodeType      uint32 // enum ibv_node_type
	TransportType uint32 // enum ibv_transport_type
	LinkLayer     uint32 // IBV_LINK_LAYER_*
	GIDType       uint32 // enum ibv_gid_type of the last entry
	NodeTypeText  string // in sysfs
	LinkLayerText string // in sysfs
	GIDTypeText   string // in sysfs

	gid func(*Port) [16]byte
	lid bool // the port has a LID
}

// Port has the data from which a port's identifiers are made.
type Port struct {
	MAC  [6]byte
	Addr netip.Addr
}

var table = [...]Personality{
	{Name: IWARP, Transport: abi.TransportIWARP, NodeType: abi.NodeRNIC, TransportType: abi.TransportTypeIWARP,
		LinkLayer: abi.LinkLayerEthernet, GIDType: abi.GIDTypeIB, NodeTypeText: "4: RNIC", GIDTypeText: "IB/RoCE v1",
		LinkLayerText: "Ethernet", gid: addressGID},
	{Name: IB, Transport: abi.TransportIB, NodeType: abi.NodeCA, TransportType: abi.TransportTypeIB,
		LinkLayer: abi.LinkLayerInfiniBand, GIDType: abi.GIDTypeIB, NodeTypeText: "1: CA", GIDTypeText: "IB/RoCE v1",
		LinkLayerText: "InfiniBand", gid: guidGID, lid: true},
	{Name: RoCE, Transport: abi.TransportRoCE, NodeType: abi.NodeCA, TransportType: abi.TransportTypeIB,
		LinkLayer: abi.LinkLayerEthernet, GIDType: abi.GIDTypeRoCEV2, NodeTypeText: "1: CA", GIDTypeText: "RoCE v2",
		LinkLayerText: "Ethernet", gid: addressGID},
}

// Names returns the names of the personalities.
func Names() []string {
	names := make([]string, len(table))
	for i := range table {
		names[i] = table[i].Name
	}
	return names
}

// Named returns the personality with a name, or nil.
func Named(name string) *Personality {
	for i := range table {
		if table[i].Name == name {
			return &table[i]
		}
	}
	return nil
}

// Numbered returns the personality with an enum urdma_abi_transport, or nil.
func Numbered(transport uint32) *Personality {
	for i := range table {
		if table[i].Transport == transport {
			return &table[i]
		}
	}
	return nil
}

// GID is an entry of a port's GID table.
type GID struct {
	Value    [16]byte
	TypeText string // in sysfs
}

// GIDs returns the port's GID table. A RoCE port has each address twice, as of RoCE v1 and v2, the link-local one
// first, as adapters have; verbs/lib/device/gid.c makes the same table. Peers find the port by the last entry.
func (p *Personality) GIDs(port *Port) []GID {
	last := GID{p.gid(port), p.GIDTypeText}
	if p.GIDType != abi.GIDTypeRoCEV2 {
		return []GID{last}
	}
	first := last
	if port.Addr.Is4() {
		copy(first.Value[:], linkLocal)
	}
	const v1 = "IB/RoCE v1"
	return []GID{{first.Value, v1}, first, {last.Value, v1}, last}
}

// linkLocal is in front of an IPv4 address, the link-local form of it (RFC 5214 section 6.2).
const linkLocal = "\xfe\x80\x00\x00\x00\x00\x00\x00\x00\x00\x5e\xfe"

// OfLinkLocal returns the IPv4 address that a link-local GID of a RoCE port stands for.
func OfLinkLocal(gid netip.Addr) (ip netip.Addr, ok bool) {
	b := gid.As16()
	if string(b[:len(linkLocal)]) != linkLocal {
		return netip.Addr{}, false
	}
	return netip.AddrFrom4([4]byte(b[len(linkLocal):])), true
}

// LID returns the port's local identifier, the low 16 bits of its address; 0 if the personality has no LID or
// these bits are not a unicast LID.
func (p *Personality) LID(port *Port) uint16 {
	if lid, ok := UnicastLID(port.Addr); p.lid && ok {
		return lid
	}
	return 0
}

// Describe fills in the fields of a device's description that depend on its personality.
func (p *Personality) Describe(port *Port, d *abi.Device) {
	d.Transport, d.NodeType, d.TransportType = p.Transport, p.NodeType, p.TransportType
	d.LinkLayer, d.GIDType, d.LID, d.GID = p.LinkLayer, p.GIDType, uint32(p.LID(port)), p.gid(port)
	d.NodeGUIDBE = GUID(port.MAC)
}

// The unicast LIDs (InfiniBand Architecture Specification vol. 1).
const (
	MinLID = 0x0001
	MaxLID = 0xBFFF
)

// UnicastLID returns the low 16 bits of an address, and whether they can be a port's LID.
func UnicastLID(a netip.Addr) (lid uint16, ok bool) {
	if !a.IsValid() {
		return 0, false
	}
	b := a.As16()
	lid = binary.BigEndian.Uint16(b[14:])
	return lid, lid >= MinLID && lid <= MaxLID
}

// GUID returns the EUI-64 of a MAC address (RFC 4291 appendix A).
func GUID(m [6]byte) [8]byte {
	return [8]byte{m[0] ^ 2, m[1], m[2], 0xff, 0xfe, m[3], m[4], m[5]}
}

// guidGID is InfiniBand's GID: the default subnet prefix and the port's GUID.
func guidGID(port *Port) (g [16]byte) {
	guid := GUID(port.MAC)
	g[0], g[1] = 0xfe, 0x80
	copy(g[8:], guid[:])
	return g
}

// addressGID is the address, IPv4 mapped into IPv6 (RFC 4291 section 2.5.5.2), by which peers find the port
// (docs/WIRE.md chapter 9). A hardware iWARP device has its MAC address there instead.
func addressGID(port *Port) (g [16]byte) {
	if port.Addr.IsValid() {
		g = port.Addr.As16()
	}
	return g
}
