package udp

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// Control messages (cmsg(3)) of 64-bit Linux: length, level, type, data, padded
// to 8 bytes.
const (
	controlHeader = unix.SizeofCmsghdr
	controlRoom   = 96 // room for UDP_GRO, SO_RXQ_OVFL, and IP_TOS or IPV6_TCLASS
)

type controlBuffer [controlRoom]byte

// putSegment writes UDP_SEGMENT, which must be the first, and returns the length so far.
func (c *controlBuffer) putSegment(size int) int {
	b := c.begin(0, 2, unix.IPPROTO_UDP, unix.UDP_SEGMENT)
	binary.NativeEndian.PutUint16(b, uint16(size))
	return controlHeader + 8
}

// putClass appends IP_TOS or IPV6_TCLASS at an offset and returns the new length.
func (c *controlBuffer) putClass(at int, v4 bool, class uint8) int {
	level, kind := uint32(unix.IPPROTO_IPV6), uint32(unix.IPV6_TCLASS)
	if v4 {
		level, kind = unix.IPPROTO_IP, unix.IP_TOS
	}
	b := c.begin(at, 4, level, kind)
	binary.NativeEndian.PutUint32(b, uint32(class))
	return at + controlHeader + 8
}

// begin writes the header of a control message with n bytes of data and returns the room for the data.
func (c *controlBuffer) begin(at int, n uint64, level, kind uint32) []byte {
	b := c[at:]
	binary.NativeEndian.PutUint64(b, controlHeader+n)
	binary.NativeEndian.PutUint32(b[8:], level)
	binary.NativeEndian.PutUint32(b[12:], kind)
	return b[controlHeader:]
}

// parse reads the control messages of a message: the size of the datagrams from which it was joined, how many
// datagrams the socket has dropped since it was opened, and the traffic class; 0 for each that is missing.
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
