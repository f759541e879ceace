package wire

// TermCode is the reason for terminating a stream: layer, error type and error code of a Terminate as layer<<12 |
// etype<<8 | code, the 16 bits on the wire (RFC 5040 section 4.8, RFC 6580).
type TermCode uint16

func (c TermCode) Layer() uint8 { return uint8(c >> 12) }
func (c TermCode) Type() uint8  { return uint8(c>>8) & 0xf }
func (c TermCode) Code() uint8  { return uint8(c) }

const (
	TermRDMAPCatastrophic TermCode = 0x0000

	// RDMAP remote protection errors.
	TermProtectionSTag        TermCode = 0x0100 // invalid STag
	TermProtectionBounds      TermCode = 0x0101 // base or bounds
	TermProtectionAccess      TermCode = 0x0102 // access rights
	TermProtectionStream      TermCode = 0x0103 // STag not on this stream
	TermProtectionWrap        TermCode = 0x0104 // TO wrap
	TermProtectionInvalidate  TermCode = 0x0109 // STag cannot be invalidated
	TermProtectionUnspecified TermCode = 0x01ff

	// RDMAP remote operation errors.
	TermOperationVersion     TermCode = 0x0205 // RDMAP version
	TermOperationOpcode      TermCode = 0x0206 // unexpected opcode
	TermOperationStream      TermCode = 0x0207 // catastrophic to the stream
	TermOperationGlobal      TermCode = 0x0208 // catastrophic, global
	TermOperationInvalidate  TermCode = 0x0209 // STag cannot be invalidated
	TermOperationUnspecified TermCode = 0x02ff

	TermDDPCatastrophic TermCode = 0x1000

	// DDP tagged buffer errors.
	TermTaggedSTag    TermCode = 0x1100 // invalid STag
	TermTaggedBounds  TermCode = 0x1101 // base or bounds
	TermTaggedStream  TermCode = 0x1102 // STag not on this stream
	TermTaggedWrap    TermCode = 0x1103 // TO wrap
	TermTaggedVersion TermCode = 0x1104 // DDP version

	// DDP untagged buffer errors.
	TermUntaggedQN       TermCode = 0x1201 // invalid QN
	TermUntaggedNoBuffer TermCode = 0x1202 // no buffer for the MSN
	TermUntaggedMSN      TermCode = 0x1203 // MSN out of range
	TermUntaggedMO       TermCode = 0x1204 // invalid MO
	TermUntaggedTooLong  TermCode = 0x1205 // message too long
	TermUntaggedVersion  TermCode = 0x1206 // DDP version

	// MPA errors (RFC 5044 section 8, RFC 6581 section 7); TRP has none.
	TermMPALost    TermCode = 0x2001 // connection lost
	TermMPACRC     TermCode = 0x2002 // CRC
	TermMPAMarker  TermCode = 0x2003 // marker and length mismatch
	TermMPARequest TermCode = 0x2004 // bad request or reply
	TermMPALocal   TermCode = 0x2005 // local catastrophic
	TermMPAIRD     TermCode = 0x2006 // insufficient IRD
	TermMPARTR     TermCode = 0x2007 // no matching RTR
)

// String names the code, for logs and error texts.
func (c TermCode) String() string {
	if s := c.name(); s != "" {
		return s
	}
	return "unassigned code, layer " + decimal(uint32(c.Layer())) +
		" type " + decimal(uint32(c.Type())) + " code " + decimal(uint32(c.Code()))
}

// TermCodes are the named codes of RDMAP and DDP, in ascending order.
var TermCodes = func() (all []TermCode) {
	for c := TermRDMAPCatastrophic; c < TermMPALost&0xf000; c++ {
		if c.name() != "" {
			all = append(all, c)
		}
	}
	return all
}()

func (c TermCode) name() string {
	switch c.Layer() {
	case 0:
		return c.rdmapName()
	case 1:
		return c.ddpName()
	case 2:
		return c.mpaName()
	}
	return ""
}

func (c TermCode) rdmapName() string {
	switch c {
	case TermRDMAPCatastrophic:
		return "RDMAP local catastrophic error"
	case TermProtectionSTag:
		return "remote protection: invalid STag"
	case TermProtectionBounds:
		return "remote protection: base or bounds violation"
	case TermProtectionAccess:
		return "remote protection: access rights violation"
	case TermProtectionStream:
		return "remote protection: STag not associated with this stream"
	case TermProtectionWrap:
		return "remote protection: tagged offset wraps"
	case TermProtectionInvalidate:
		return "remote protection: STag cannot be invalidated"
	case TermProtectionUnspecified:
		return "remote protection: unspecified"
	case TermOperationVersion:
		return "remote operation: invalid RDMAP version"
	case TermOperationOpcode:
		return "remote operation: unexpected opcode"
	case TermOperationStream:
		return "remote operation: catastrophic to this stream"
	case TermOperationGlobal:
		return "remote operation: catastrophic, global"
	case TermOperationInvalidate:
		return "remote operation: STag cannot be invalidated"
	case TermOperationUnspecified:
		return "remote operation: unspecified"
	}
	return ""
}

func (c TermCode) ddpName() string {
	switch c {
	case TermDDPCatastrophic:
		return "DDP local catastrophic error"
	case TermTaggedSTag:
		return "tagged buffer: invalid STag"
	case TermTaggedBounds:
		return "tagged buffer: base or bounds violation"
	case TermTaggedStream:
		return "tagged buffer: STag not associated with this stream"
	case TermTaggedWrap:
		return "tagged buffer: tagged offset wraps"
	case TermTaggedVersion:
		return "tagged buffer: invalid DDP version"
	case TermUntaggedQN:
		return "untagged buffer: invalid queue number"
	case TermUntaggedNoBuffer:
		return "untagged buffer: no buffer posted for the message"
	case TermUntaggedMSN:
		return "untagged buffer: message number out of range"
	case TermUntaggedMO:
		return "untagged buffer: invalid message offset"
	case TermUntaggedTooLong:
		return "untagged buffer: message too long for the buffer"
	case TermUntaggedVersion:
		return "untagged buffer: invalid DDP version"
	}
	return ""
}

func (c TermCode) mpaName() string {
	switch c {
	case TermMPALost:
		return "MPA: connection lost"
	case TermMPACRC:
		return "MPA: CRC error"
	case TermMPAMarker:
		return "MPA: marker and length mismatch"
	case TermMPARequest:
		return "MPA: invalid request or reply frame"
	case TermMPALocal:
		return "MPA: local catastrophic error"
	case TermMPAIRD:
		return "MPA: insufficient IRD"
	case TermMPARTR:
		return "MPA: no matching RTR"
	}
	return ""
}

// IsUntagged reports whether the error concerns DDP's untagged buffer model (RFC 5041 section 7): the message was
// wrong, not the memory that it names.
func (c TermCode) IsUntagged() bool { return c.Layer() == 1 && c.Type() == 2 }
