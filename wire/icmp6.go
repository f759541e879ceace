package wire

import "encoding/binary"

// This file has ICMPv6 (RFC 4443): checksums and echo. Neighbour discovery is in
// ndp.go, multicast listener discovery in mld.go.

// ProtoICMPv6 is the next-header number of ICMPv6.
const ProtoICMPv6 = 58

// ICMPv6 types.
const (
	ICMPv6EchoRequest = 128
	ICMPv6EchoReply   = 129
	ICMPv6MLDQuery    = 130
	ICMPv6Solicit     = 135
	ICMPv6Advertise   = 136
	ICMPv6MLDReport   = 143
)

// VerifyICMPv6Checksum reports whether message, the whole ICMPv6 message of f, has a correct checksum (RFC 4443
// section 2.3).
func VerifyICMPv6Checksum(f *Frame, message []byte) bool {
	return len(message) == f.PayloadLen && len(message) >= 4 &&
		Fold(Checksum(pseudoIPv6(f.Src6, f.Dst6, ProtoICMPv6, len(message)), message)) == 0xffff
}

// putICMPv6Checksum fills in the checksum of a complete message.
func putICMPv6Checksum(message []byte, src, dst IPv6) {
	message[2], message[3] = 0, 0
	sum := Checksum(pseudoIPv6(src, dst, ProtoICMPv6, len(message)), message)
	binary.BigEndian.PutUint16(message[2:], ^Fold(sum))
}

// echoReply6 is EchoReply for IPv6 (RFC 4443 section 4.2).
func echoReply6(f *Frame, frame []byte, mac MAC) error {
	if f.Proto != ProtoICMPv6 {
		return ErrICMPKind
	}
	if f.IPHeaderLen != IPv6Len || f.Src6.IsGroup() || f.Dst6.IsGroup() || f.Src.IsGroup() {
		return ErrICMPRefused
	}
	if len(frame) < f.PayloadOff+f.PayloadLen {
		return ErrFrameShort
	}
	message := frame[f.PayloadOff : f.PayloadOff+f.PayloadLen]
	if len(message) < ICMPEchoLen {
		return ErrICMPShort
	}
	if message[0] != ICMPv6EchoRequest || message[1] != 0 {
		return ErrICMPKind
	}
	if !VerifyICMPv6Checksum(f, message) {
		return ErrICMPChecksum
	}
	message[0] = ICMPv6EchoReply
	putICMPv6Checksum(message, f.Dst6, f.Src6)
	at := PutEthernet(frame, f.Src, mac, EtherTypeIPv6)
	PutIPv6(frame[at:], f.Dst6, f.Src6, ProtoICMPv6, len(message))
	return nil
}
