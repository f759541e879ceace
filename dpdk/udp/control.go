package udp

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// Control messages (cmsg(3)) of 64-bit Linux: length, level, type, data, padded
// to 8 bytes.
const (
	controlHeader = unix.SizeofCmsghdr
	controlRoom   = 96 // for what we ask for: UDP_GRO, SO_RXQ_OVFL, and IP_TOS or IPV6_TCLASS
)

type controlBuffer [controlRoom]byte

// putSegment writes UDP_SEGMENT and returns its length.
func (c *controlBuffer) putSegment(size int) int {
	binary.NativeEndian.PutUint64(c[:], controlHeader+2)
	binary.NativeEndian.PutUint32(c[8:], unix.IPPROTO_UDP)
	binary.NativeEndian.PutUint32(c[12:], unix.UDP_SEGMENT)
	binary.NativeEndian.PutUint16(c[controlHeader:], uint16(size))
	return controlHeader + 8
}

// parse reads what came with a message: the size of the datagrams it was joined
// from, how many the socket has dropped since it was opened, and the traffic class; 0
// where it does not say.
func (c *controlBuffer) parse(n int) (segment int, dropped uint32, class uint8) {
	for b := c[:min(n, len(c))]; len(b) >= controlHeader+4; {
		length := binary.NativeEndian.Uint64(b)
		if length < controlHeader+1 || length > uint64(len(b)) {
			break
		}
		value := binary.NativeEndian.Uint32(b[controlHeader:])
		switch [2]uint32{binary.NativeEndian.Uint32(b[8:]), binary.NativeEndian.Uint32(b[12:])} {
		case [2]uint32{unix.IPPROTO_UDP, unix.UDP_GRO}:
			segment = int(int32(value))
		case [2]uint32{unix.SOL_SOCKET, unix.SO_RXQ_OVFL}:
			dropped = value
		case [2]uint32{unix.IPPROTO_IP, unix.IP_TOS}: // one byte
			class = b[controlHeader]
		case [2]uint32{unix.IPPROTO_IPV6, unix.IPV6_TCLASS}:
			class = uint8(value)
		}
		b = b[min(len(b), int(length+7)&^7):]
	}
	return max(segment, 0), dropped, class
}
