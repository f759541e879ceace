package wire

import "net/netip"

// NDP is a neighbour solicitation or advertisement (RFC 4861 sections 4.3, 4.4), with the fields used on Ethernet.
type NDP struct {
	Type      uint8 // ICMPv6Solicit or ICMPv6Advertise
	Router    bool  // this and the next two are flags of advertisements
	Solicited bool
	Override  bool
	Target    IPv6
	// MAC is the link-layer address option, of the source or the target.
	MAC    MAC
	HasMAC bool
}

const (
	ndpHopLimit = 255 // no router has forwarded it
	ndpLen      = 24
	// NDPFrameLen is the length of the longest frame that Put writes.
	NDPFrameLen = EthernetLen + IPv6Len + ndpLen + ndpOptionLen

	ndpOptionLen    = 8 // link-layer address
	ndpOptionSource = 1
	ndpOptionTarget = 2

	ndpRouter    = 0x80
	ndpSolicited = 0x40
	ndpOverride  = 0x20
)

// AllNodes is the group of all IPv6 hosts of the link.
var AllNodes = IPv6{0: 0xff, 1: 2, 15: 1}

// SolicitedNode is the group to which a solicitation for the address is sent (RFC 4291 section 2.7.1).
func SolicitedNode(a IPv6) IPv6 {
	return IPv6{0: 0xff, 1: 2, 11: 1, 12: 0xff, 13: a[13], 14: a[14], 15: a[15]}
}

// Group6MAC is the Ethernet address of an IPv6 group (RFC 2464 section 7).
func Group6MAC(group IPv6) MAC { return MAC{0x33, 0x33, group[12], group[13], group[14], group[15]} }

// LinkLocal is the link-local address of an interface with an Ethernet address
// (RFC 2464 section 5).
func LinkLocal(m MAC) IPv6 {
	return IPv6{0: 0xfe, 1: 0x80, 8: m[0] ^ 2, 9: m[1], 10: m[2], 11: 0xff, 12: 0xfe, 13: m[3], 14: m[4], 15: m[5]}
}

// IsGroup reports whether a does not belong to a single host: unspecified or multicast.
func (a IPv6) IsGroup() bool { return a[0] == 0xff || a == IPv6{} }

// IsLinkLocal reports whether a is a link-local unicast address, fe80::/10.
func (a IPv6) IsLinkLocal() bool { return netip.AddrFrom16(a).IsLinkLocalUnicast() }

// Parse reads message, the whole ICMPv6 message of f. It refuses what RFC 4861 section 7.1 says to discard.
func (p *NDP) Parse(f *Frame, message []byte) error {
	switch {
	case f.TTL != ndpHopLimit:
		return ErrNDPHopLimit
	case len(message) != f.PayloadLen || len(message) < ndpLen:
		return ErrNDPShort
	case message[0] != ICMPv6Solicit && message[0] != ICMPv6Advertise || message[1] != 0:
		return ErrNDPKind
	case !VerifyICMPv6Checksum(f, message):
		return ErrICMPChecksum
	}
	*p = NDP{Type: message[0], Target: IPv6(message[8:24])}
	if p.Type == ICMPv6Advertise {
		flags := message[4]
		p.Router, p.Solicited, p.Override = flags&ndpRouter != 0, flags&ndpSolicited != 0, flags&ndpOverride != 0
	}
	if err := p.parseOptions(message[ndpLen:]); err != nil {
		return err
	}
	return p.checkAddresses(f)
}

// linkOption is the type of the link-layer address option.
func (p *NDP) linkOption() byte {
	if p.Type == ICMPv6Solicit {
		return ndpOptionSource
	}
	return ndpOptionTarget
}

func (p *NDP) parseOptions(b []byte) error {
	for len(b) > 0 {
		if len(b) < 2 || b[1] == 0 || int(b[1])*8 > len(b) {
			return ErrNDPOption
		}
		size := int(b[1]) * 8
		if b[0] == p.linkOption() {
			p.MAC, p.HasMAC = MAC(b[2:8]), true
			if size != ndpOptionLen || p.MAC.IsGroup() {
				return ErrNDPOption
			}
		}
		b = b[size:]
	}
	return nil
}

// checkAddresses: a host without an address solicits a group and includes no link-layer address; a solicited
// advertisement is unicast.
func (p *NDP) checkAddresses(f *Frame) error {
	unspecified := f.Src6 == IPv6{}
	switch {
	case p.Target.IsGroup() || !unspecified && f.Src6.IsGroup():
		return ErrNDPAddress
	case p.Type == ICMPv6Solicit && unspecified && (p.HasMAC || f.Dst6 != SolicitedNode(p.Target)):
		return ErrNDPAddress
	case p.Type == ICMPv6Advertise && (unspecified || p.Solicited && f.Dst6.IsGroup()):
		return ErrNDPAddress
	}
	return nil
}

// Put writes a whole frame with the message and returns its length. b has room for
// NDPFrameLen bytes.
func (p *NDP) Put(b []byte, from, to MAC, src, dst IPv6) int {
	length := ndpLen
	if p.HasMAC {
		length += ndpOptionLen
	}
	at := PutEthernet(b, to, from, EtherTypeIPv6)
	at += PutIPv6(b[at:], src, dst, ProtoICMPv6, length)
	b[EthernetLen+7] = ndpHopLimit
	m := b[at : at+length]
	clear(m)
	m[0], m[4] = p.Type, p.flags()
	copy(m[8:], p.Target[:])
	if p.HasMAC {
		m[ndpLen], m[ndpLen+1] = p.linkOption(), ndpOptionLen/8
		copy(m[ndpLen+2:], p.MAC[:])
	}
	putICMPv6Checksum(m, src, dst)
	return at + length
}

func (p *NDP) flags() (flags byte) {
	if p.Router {
		flags |= ndpRouter
	}
	if p.Solicited {
		flags |= ndpSolicited
	}
	if p.Override {
		flags |= ndpOverride
	}
	return flags
}
