package wire

import "encoding/binary"

// ICMPEchoLen is the length of the header of an ICMP echo message.
const ICMPEchoLen = 8

// ICMP types (RFC 792).
const (
	ICMPEchoReply   = 0
	ICMPEchoRequest = 8
)

// ICMPEcho is the header of an echo request or reply.
type ICMPEcho struct {
	Type uint8
	ID   uint16
	Seq  uint16
}

// Parse reads b, a whole ICMP message, and verifies its checksum.
func (e *ICMPEcho) Parse(b []byte) (n int, err error) {
	if len(b) < ICMPEchoLen {
		return 0, ErrICMPShort
	}
	if (b[0] != ICMPEchoRequest && b[0] != ICMPEchoReply) || b[1] != 0 {
		return 0, ErrICMPKind
	}
	if Fold(Checksum(0, b)) != 0xffff {
		return 0, ErrICMPChecksum
	}
	e.Type = b[0]
	e.ID = binary.BigEndian.Uint16(b[4:])
	e.Seq = binary.BigEndian.Uint16(b[6:])
	return ICMPEchoLen, nil
}

// Put writes the header at the start of b, a whole message with its payload in place, and computes the checksum.
func (e *ICMPEcho) Put(b []byte) int {
	_ = b[ICMPEchoLen-1]
	binary.BigEndian.PutUint32(b, uint32(e.Type)<<24)
	binary.BigEndian.PutUint16(b[4:], e.ID)
	binary.BigEndian.PutUint16(b[6:], e.Seq)
	binary.BigEndian.PutUint16(b[2:], ^Fold(Checksum(0, b)))
	return ICMPEchoLen
}

// EchoReply turns an ICMP or ICMPv6 echo request into its reply, in place. f is the parsed frame, sent to an
// address of ours; mac is our MAC address. The reply keeps the identifier, sequence number and payload (RFC 1122
// section 3.2.2.6). Requests with IPv4 options (a source route would have to be reversed) or extension headers, and
// requests from or to group addresses, are refused and left unchanged.
func EchoReply(f *Frame, frame []byte, mac MAC) error {
	if f.Type == EtherTypeIPv6 {
		return echoReply6(f, frame, mac)
	}
	if f.Type != EtherTypeIPv4 || f.Proto != ProtoICMP {
		return ErrICMPKind
	}
	if f.IPHeaderLen != IPv4Len || f.SrcIP.IsGroup() || f.DstIP.IsGroup() || f.Src.IsGroup() {
		return ErrICMPRefused
	}
	if len(frame) < f.PayloadOff+f.PayloadLen {
		return ErrFrameShort
	}
	var e ICMPEcho
	message := frame[f.PayloadOff : f.PayloadOff+f.PayloadLen]
	if _, err := e.Parse(message); err != nil {
		return err
	}
	if e.Type != ICMPEchoRequest {
		return ErrICMPKind
	}
	e.Type = ICMPEchoReply
	e.Put(message)
	PutEthernet(frame, f.Src, mac, EtherTypeIPv4)
	ip := frame[EthernetLen : EthernetLen+IPv4Len]
	ip[8] = defaultTTL
	copy(ip[12:16], f.DstIP[:])
	copy(ip[16:20], f.SrcIP[:])
	ip[10], ip[11] = 0, 0
	binary.BigEndian.PutUint16(ip[10:], ^Fold(Checksum(0, ip)))
	return nil
}
