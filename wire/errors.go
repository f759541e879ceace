package wire

import "errors"

// Refusals of the outer headers and of TRP. A packet that earns one is dropped
// and counted; its sender isn't told, because it may be anyone.
var (
	ErrFrameShort    = errors.New("ethernet: frame shorter than 14 bytes")
	ErrHeaderCopy    = errors.New("frame: header copy shorter than min(frame length, MaxHeaderLen)")
	ErrVLAN          = errors.New("ethernet: VLAN tag (0x8100, 0x88a8 or 0x9100), untagged frame expected")
	ErrIPv4Short     = errors.New("ipv4: packet shorter than 20 bytes")
	ErrIPv4Version   = errors.New("ipv4: version field is not 4")
	ErrIPv4HeaderLen = errors.New("ipv4: header length below 20 bytes or beyond the total length")
	ErrIPv4TotalLen  = errors.New("ipv4: total length beyond the end of the frame")
	ErrIPv4Fragment  = errors.New("ipv4: fragment (more-fragments set or offset not 0), whole packet expected")
	ErrIPv6Short     = errors.New("ipv6: packet shorter than 40 bytes")
	ErrIPv6Version   = errors.New("ipv6: version field is not 6")
	ErrIPv6Length    = errors.New("ipv6: payload length beyond the end of the frame")
	ErrIPv6Extension = errors.New("ipv6: extension headers longer than 40 bytes or beyond the packet, or hop-by-hop options that are not the first")
	ErrIPv6Option    = errors.New("ipv6: option that must not be ignored, or beyond its header")
	ErrIPv6Routing   = errors.New("ipv6: routing header")
	ErrIPv6Fragment  = errors.New("ipv6: fragment, whole packet expected")
	ErrUDPShort      = errors.New("udp: datagram shorter than 8 bytes")
	ErrUDPLength     = errors.New("udp: length field below 8 or beyond the IP packet")
	ErrARPShort      = errors.New("arp: packet shorter than 28 bytes")
	ErrARPKind       = errors.New("arp: not Ethernet and IPv4 (types 1, 0x0800, lengths 6, 4)")
	ErrICMPShort     = errors.New("icmp: message shorter than 8 bytes")
	ErrICMPKind      = errors.New("icmp: not an echo request or echo reply")
	ErrICMPChecksum  = errors.New("icmp: checksum wrong")
	ErrICMPRefused   = errors.New("icmp: echo request that must not be answered (options or group address)")

	ErrNDPHopLimit = errors.New("ndp: hop limit is not 255: not from this link")
	ErrNDPShort    = errors.New("ndp: message shorter than 24 bytes")
	ErrNDPKind     = errors.New("ndp: not a neighbour solicitation or advertisement with code 0")
	ErrNDPOption   = errors.New("ndp: option of length 0, beyond the message, or with no Ethernet address")
	ErrNDPAddress  = errors.New("ndp: target is a group, or source or destination do not fit the message")
	ErrMLD         = errors.New("mld: query that is too short, has a wrong checksum, or is not from this link")

	ErrEncapShort   = errors.New("encapsulation: datagram shorter than 8 bytes")
	ErrEncapMagic   = errors.New("encapsulation: magic is not 0x7552")
	ErrEncapVersion = errors.New("encapsulation: version is not 1")
	ErrEncapType    = errors.New("encapsulation: unknown type")
	ErrPadding      = errors.New("encapsulation: padding of an impossible length")
	ErrProbeShort   = errors.New("encapsulation: probe shorter than 16 bytes")

	ErrTRPShort           = errors.New("trp: packet shorter than its header")
	ErrTRPOpcode          = errors.New("trp: opcode that nobody has")
	ErrDatagramShort      = errors.New("datagram: packet shorter than its header")
	ErrDatagramOpcode     = errors.New("datagram: opcode is not 6")
	ErrDatagramQPN        = errors.New("datagram: queue pair number has more than 24 bits")
	ErrUCShort            = errors.New("uc: packet shorter than its header")
	ErrUCOpcode           = errors.New("uc: opcode is not 8")
	ErrConnectShort       = errors.New("trp: request, accept or reject shorter than its private-data length says")
	ErrPrivateDataLen     = errors.New("trp: private data longer than 512 bytes")
	ErrExtensionLen       = errors.New("trp: extension block shorter than 20 bytes or beyond the packet")
	ErrExtensionSegment   = errors.New("trp: extension offers a maximum segment below 128 bytes (RFC 5041 section 5.1)")
	ErrExtensionWindow    = errors.New("trp: extension offers a receive window outside 1..4095 segments")
	ErrSackLen            = errors.New("trp: sack body is not a whole number of 8-byte runs")
	ErrSackCount          = errors.New("trp: sack has more runs than the receiver of the list takes")
	ErrSackRun            = errors.New("trp: sack run is empty or ends before it starts")
	ErrMPAShort           = errors.New("mpa: request or reply shorter than its private-data length says")
	ErrMPAKey             = errors.New("mpa: the stream does not begin with the key of a request or reply")
	ErrMPAPrivate         = errors.New("mpa: private data longer than 512 bytes")
	ErrMPAEnhanced        = errors.New("mpa: enhanced mode without revision 2, or without IRD and ORD")
	ErrBufferShort        = errors.New("wire: buffer shorter than the message to be written")
	ErrTerminateShort     = errors.New("terminate: message shorter than its header control bits say")
	ErrTerminateHeaderDDP = errors.New("terminate: RDMAP header without the DDP header it belongs to")
)

// PacketErrors are those that packets from a network earn, for who counts them:
// a count that is zero is there as well.
var PacketErrors = []error{
	ErrFrameShort, ErrVLAN, ErrIPv4Short, ErrIPv4Version, ErrIPv4HeaderLen, ErrIPv4TotalLen, ErrIPv4Fragment,
	ErrIPv6Short, ErrIPv6Version, ErrIPv6Length, ErrIPv6Extension, ErrIPv6Option, ErrIPv6Routing, ErrIPv6Fragment,
	ErrUDPShort, ErrUDPLength, ErrARPShort, ErrARPKind, ErrICMPShort, ErrICMPKind, ErrICMPChecksum,
	ErrICMPRefused, ErrNDPHopLimit, ErrNDPShort, ErrNDPKind, ErrNDPOption, ErrNDPAddress, ErrMLD, ErrEncapShort, ErrEncapMagic, ErrEncapVersion, ErrEncapType, ErrPadding, ErrProbeShort, ErrTRPShort, ErrTRPOpcode,
	ErrDatagramShort, ErrDatagramOpcode, ErrDatagramQPN, ErrUCShort, ErrUCOpcode, ErrConnectShort,
	ErrPrivateDataLen, ErrExtensionLen, ErrExtensionSegment, ErrExtensionWindow, ErrSackLen, ErrSackCount,
	ErrSackRun,
}

// ProtocolError is a refusal inside an established connection. The stream ends
// with a Terminate that carries Code.
type ProtocolError struct {
	Code   TermCode
	Reason string
}

func (e *ProtocolError) Error() string {
	return e.Reason + " (terminate: " + e.Code.String() + ")"
}

// Refusals of DDP and RDMAP. Layer, type and code follow RFC 5040 section 4.8
// and RFC 5041 section 7. A segment too short for its own header has no row
// there; it is answered as catastrophic to the stream, and nothing else is lost.
var (
	ErrDDPShort           = &ProtocolError{TermOperationStream, "ddp: segment shorter than its header"}
	ErrDDPTaggedVersion   = &ProtocolError{TermTaggedVersion, "ddp: version of a tagged segment is not 1"}
	ErrDDPUntaggedVersion = &ProtocolError{TermUntaggedVersion, "ddp: version of an untagged segment is not 1"}
	ErrDDPQueue           = &ProtocolError{TermUntaggedQN, "ddp: queue number above 3"}
	ErrDDPOffset          = &ProtocolError{TermUntaggedMO, "ddp: message offset not 0 in a message of one segment"}
	ErrDDPNotLast         = &ProtocolError{TermUntaggedTooLong, "ddp: last flag missing in a message of one segment"}
	ErrRDMAPVersion       = &ProtocolError{TermOperationVersion, "rdmap: version is not 1"}
	ErrRDMAPOpcode        = &ProtocolError{TermOperationOpcode, "rdmap: opcode above 11"}
	ErrRDMAPTagged        = &ProtocolError{TermOperationOpcode, "rdmap: opcode belongs to the other buffer model (tagged or untagged)"}
	ErrRDMAPQueue         = &ProtocolError{TermOperationOpcode, "rdmap: opcode does not belong on this queue"}
	ErrReadRequestShort   = &ProtocolError{TermOperationStream, "rdmap: read request shorter than 28 bytes"}
	ErrReadRequestLong    = &ProtocolError{TermUntaggedTooLong, "rdmap: read request longer than 28 bytes"}
	ErrAtomicShort        = &ProtocolError{TermOperationStream, "rdmap: atomic message shorter than its body"}
	ErrAtomicLong         = &ProtocolError{TermUntaggedTooLong, "rdmap: atomic message longer than its body"}
	ErrAtomicOpcode       = &ProtocolError{TermOperationOpcode, "rdmap: atomic opcode above 2 (CmpSwap)"}
	ErrImmediateShort     = &ProtocolError{TermOperationStream, "rdmap: immediate data shorter than 8 bytes"}
	ErrImmediateLong      = &ProtocolError{TermUntaggedTooLong, "rdmap: immediate data longer than 8 bytes"}
)
