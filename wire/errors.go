package wire

import "errors"

// Errors of the outer headers and of TRP. A packet with such an error is dropped and counted. Its sender isn't
// told, because its address may be forged.
var (
	ErrFrameShort    = packetError("ethernet: frame shorter than 14 bytes")
	ErrHeaderCopy    = errors.New("frame: header copy shorter than min(frame length, MaxHeaderLen)")
	ErrVLAN          = packetError("ethernet: VLAN tag (0x8100, 0x88a8 or 0x9100), untagged frame expected")
	ErrIPv4Short     = packetError("ipv4: packet shorter than 20 bytes")
	ErrIPv4Version   = packetError("ipv4: version field is not 4")
	ErrIPv4HeaderLen = packetError("ipv4: header length below 20 bytes or beyond the total length")
	ErrIPv4TotalLen  = packetError("ipv4: total length beyond the end of the frame")
	ErrIPv4Fragment  = packetError("ipv4: fragment (more-fragments set or offset not 0), whole packet expected")
	ErrIPv6Short     = packetError("ipv6: packet shorter than 40 bytes")
	ErrIPv6Version   = packetError("ipv6: version field is not 6")
	ErrIPv6Length    = packetError("ipv6: payload length beyond the end of the frame")
	ErrIPv6Extension = packetError("ipv6: extension headers longer than 40 bytes or beyond the packet, or hop-by-hop " +
		"options that are not the first")
	ErrIPv6Option   = packetError("ipv6: option that must not be ignored, or beyond its header")
	ErrIPv6Routing  = packetError("ipv6: routing header")
	ErrIPv6Fragment = packetError("ipv6: fragment, whole packet expected")
	ErrUDPShort     = packetError("udp: datagram shorter than 8 bytes")
	ErrUDPLength    = packetError("udp: length field below 8 or beyond the IP packet")
	ErrARPShort     = packetError("arp: packet shorter than 28 bytes")
	ErrARPKind      = packetError("arp: not Ethernet and IPv4 (types 1, 0x0800, lengths 6, 4)")
	ErrICMPShort    = packetError("icmp: message shorter than 8 bytes")
	ErrICMPKind     = packetError("icmp: not an echo request or echo reply")
	ErrICMPChecksum = packetError("icmp: checksum wrong")
	ErrICMPRefused  = packetError("icmp: echo request that must not be answered (options or group address)")

	ErrNDPHopLimit = packetError("ndp: hop limit is not 255: not from this link")
	ErrNDPShort    = packetError("ndp: message shorter than 24 bytes")
	ErrNDPKind     = packetError("ndp: not a neighbour solicitation or advertisement with code 0")
	ErrNDPOption   = packetError("ndp: option of length 0, beyond the message, or with no Ethernet address")
	ErrNDPAddress  = packetError("ndp: target is a group, or source or destination do not fit the message")
	ErrMLD         = packetError("mld: query that is too short, has a wrong checksum, or is not from this link")

	ErrEncapShort   = packetError("encapsulation: datagram shorter than 8 bytes")
	ErrEncapMagic   = packetError("encapsulation: magic is not 0x7552")
	ErrEncapVersion = packetError("encapsulation: version is not 1")
	ErrEncapType    = packetError("encapsulation: unknown type")
	ErrPadding      = packetError("encapsulation: padding of an impossible length")
	ErrProbeShort   = packetError("encapsulation: probe shorter than 16 bytes")

	ErrTRPShort           = packetError("trp: packet shorter than its header")
	ErrTRPOpcode          = packetError("trp: opcode that nobody has")
	ErrDatagramShort      = packetError("datagram: packet shorter than its header")
	ErrDatagramOpcode     = packetError("datagram: opcode is not 6")
	ErrDatagramQPN        = packetError("datagram: queue pair number has more than 24 bits")
	ErrUCShort            = packetError("uc: packet shorter than its header")
	ErrUCOpcode           = packetError("uc: opcode is not 8")
	ErrConnectShort       = packetError("trp: request, accept or reject shorter than its private-data length says")
	ErrPrivateDataLen     = packetError("trp: private data longer than 512 bytes")
	ErrExtensionLen       = packetError("trp: extension block shorter than 20 bytes or beyond the packet")
	ErrExtensionSegment   = packetError("trp: extension offers a maximum segment below 128 bytes (RFC 5041 section 5.1)")
	ErrNoExtension        = packetError("trp: no extension block of version 1, expected one behind the private data")
	ErrExtensionWindow    = packetError("trp: extension offers a receive window outside 1..4095 segments")
	ErrSackLen            = packetError("trp: sack body is not a whole number of 8-byte runs")
	ErrSackCount          = packetError("trp: sack has more runs than the receiver of the list takes")
	ErrSackRun            = packetError("trp: sack run is empty or ends before it starts")
	ErrMPAShort           = errors.New("mpa: request or reply shorter than its private-data length says")
	ErrMPAKey             = errors.New("mpa: the stream does not begin with the key of a request or reply")
	ErrMPAPrivate         = errors.New("mpa: private data longer than 512 bytes")
	ErrMPAEnhanced        = errors.New("mpa: enhanced mode without revision 2, or without IRD and ORD")
	ErrBufferShort        = errors.New("wire: buffer shorter than the message to be written")
	ErrTerminateShort     = errors.New("terminate: message shorter than its header control bits say")
	ErrTerminateHeaderDDP = errors.New("terminate: RDMAP header without the DDP header it belongs to")
)

// PacketErrors lists the errors of packets from a network, so that counters exist for those that have not occurred,
// too.
var PacketErrors []error

func packetError(text string) error {
	err := errors.New(text)
	PacketErrors = append(PacketErrors, err)
	return err
}

// ProtocolError is an error inside an established connection. The stream ends with a Terminate that carries Code.
type ProtocolError struct {
	Code   TermCode
	Reason string
}

func (e *ProtocolError) Error() string {
	return e.Reason + " (terminate: " + e.Code.String() + ")"
}

// Errors of DDP and RDMAP. Layer, type and code follow RFC 5040 section 4.8 and RFC 5041 section 7. These list no
// code for a segment that is too short for its own header: it counts as catastrophic to the stream.
var (
	ErrDDPShort           = &ProtocolError{TermOperationStream, "ddp: segment shorter than its header"}
	ErrDDPTaggedVersion   = &ProtocolError{TermTaggedVersion, "ddp: version of a tagged segment is not 1"}
	ErrDDPUntaggedVersion = &ProtocolError{TermUntaggedVersion, "ddp: version of an untagged segment is not 1"}
	ErrDDPQueue           = &ProtocolError{TermUntaggedQN, "ddp: queue number above 3"}
	ErrDDPOffset          = &ProtocolError{TermUntaggedMO, "ddp: message offset not 0 in a message of one segment"}
	ErrDDPNotLast         = &ProtocolError{TermUntaggedTooLong, "ddp: last flag missing in a message of one segment"}
	ErrRDMAPVersion       = &ProtocolError{TermOperationVersion, "rdmap: version is not 1"}
	ErrRDMAPOpcode        = &ProtocolError{TermOperationOpcode, "rdmap: opcode above 11"}
	ErrRDMAPTagged        = &ProtocolError{TermOperationOpcode,
		"rdmap: opcode belongs to the other buffer model (tagged or untagged)"}
	ErrRDMAPQueue       = &ProtocolError{TermOperationOpcode, "rdmap: opcode does not belong on this queue"}
	ErrReadRequestShort = &ProtocolError{TermOperationStream, "rdmap: read request shorter than 28 bytes"}
	ErrReadRequestLong  = &ProtocolError{TermUntaggedTooLong, "rdmap: read request longer than 28 bytes"}
	ErrAtomicShort      = &ProtocolError{TermOperationStream, "rdmap: atomic message shorter than its body"}
	ErrAtomicLong       = &ProtocolError{TermUntaggedTooLong, "rdmap: atomic message longer than its body"}
	ErrAtomicOpcode     = &ProtocolError{TermOperationOpcode, "rdmap: atomic opcode above 2 (CmpSwap)"}
	ErrImmediateShort   = &ProtocolError{TermOperationStream, "rdmap: immediate data shorter than 8 bytes"}
	ErrImmediateLong    = &ProtocolError{TermUntaggedTooLong, "rdmap: immediate data longer than 8 bytes"}
)
