package wire

import "encoding/binary"

// This file implements membership of IPv6 groups: multicast listener discovery (MLDv2, RFC 3810).

// MLDChange is the reason of a report, sent as its record type.
type MLDChange uint8

// Record types for a whole group.
const (
	MLDListens MLDChange = 2 // answer to a query (MODE_IS_EXCLUDE, no sources)
	MLDLeave   MLDChange = 3 // CHANGE_TO_INCLUDE_MODE, no sources
	MLDJoin    MLDChange = 4 // CHANGE_TO_EXCLUDE_MODE, no sources
)

// MLDReport announces that a host listens to a group, or stops listening.
type MLDReport struct {
	Change MLDChange
	Group  IPv6
}

// MLDQuery asks for the listeners of a group.
type MLDQuery struct {
	Group IPv6 // unspecified: any
}

const (
	mldAlertLen  = 8  // hop-by-hop options with the router alert (RFC 2711)
	mldQueryLen  = 24 // MLDv1, and the start of MLDv2
	mldQuery2Len = 28 // without sources
	mldReportLen = 8 + 20

	// MLDFrameLen is the length of a frame that Put writes.
	MLDFrameLen = EthernetLen + IPv6Len + mldAlertLen + mldReportLen
)

// AllMLDv2Routers is where reports go.
var AllMLDv2Routers = IPv6{0: 0xff, 1: 2, 15: 0x16}

// Put writes a whole frame with the report. src is a link-local address, or unspecified until the host has one (RFC
// 3810 section 5.2.13).
func (r *MLDReport) Put(b []byte, from MAC, src IPv6) {
	b = b[:MLDFrameLen]
	dst := AllMLDv2Routers
	at := PutEthernet(b, Group6MAC(dst), from, EtherTypeIPv6)
	at += PutIPv6(b[at:], src, dst, extHopByHop, mldAlertLen+mldReportLen)
	b[EthernetLen+7] = 1
	// Next header, length 8, router alert of value 0 (MLD), two bytes of padding.
	at += copy(b[at:], []byte{ProtoICMPv6, 0, 5, 2, 0, 0, 1, 0})
	m := b[at:]
	clear(m)
	m[0], m[7], m[8] = ICMPv6MLDReport, 1, byte(r.Change)
	copy(m[12:], r.Group[:])
	putICMPv6Checksum(m, src, dst)
}

// Parse reads a query of either version; message is the whole ICMPv6 message of f. A query that did not come from a
// router of this link is refused (RFC 3810 section 6.2).
func (q *MLDQuery) Parse(f *Frame, message []byte) error {
	if len(message) < mldQueryLen || message[0] != ICMPv6MLDQuery || f.TTL != 1 || !f.Src6.IsLinkLocal() ||
		!VerifyICMPv6Checksum(f, message) {
		return ErrMLD
	}
	if len(message) > mldQueryLen && !hasSources(message, mldQuery2Len, 16) {
		return ErrMLD
	}
	q.Group = IPv6(message[8:24])
	return nil
}

// hasSources reports whether a query of MLDv2 or IGMPv3 is long enough: a header, whose last two bytes count the
// sources, and that many addresses of size bytes. Further bytes are ignored (RFC 3810 section 5.1.12, RFC 3376
// section 4.1.10).
func hasSources(query []byte, header, size int) bool {
	return len(query) >= header && len(query) >= header+size*int(binary.BigEndian.Uint16(query[header-2:]))
}
