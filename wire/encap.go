package wire

import "encoding/binary"

// Encap is the encapsulation header in front of a TRP packet between UDP sockets (docs/WIRE.md chapter 11). One
// socket serves all connections of a port, and the port numbers of the connection are in this header.
type Encap struct {
	Type     EncapType
	Src, Dst uint16 // of the connection
}

// EncapLen is the length of an encapsulation header.
const EncapLen = 8

// EncapType says what follows an encapsulation header.
type EncapType uint8

// Types of what follows.
const (
	EncapTRP    EncapType = 0
	EncapProbe  EncapType = 1 // path MTU probe, see PathProbe
	EncapAnswer EncapType = 2 // answer to a probe
	EncapPadded EncapType = 3 // TRP packet with padding behind it
)

const (
	encapMagic   = 0x7552
	encapVersion = 1
)

// Parse reads the header at the start of b, which holds the first bytes of a datagram.
func (e *Encap) Parse(b []byte) error {
	if len(b) < EncapLen {
		return ErrEncapShort
	}
	if binary.BigEndian.Uint16(b) != encapMagic {
		return ErrEncapMagic
	}
	if b[2] != encapVersion {
		return ErrEncapVersion
	}
	*e = Encap{EncapType(b[3]), binary.BigEndian.Uint16(b[4:]), binary.BigEndian.Uint16(b[6:])}
	if e.Type > EncapPadded {
		return ErrEncapType
	}
	return nil
}

// Put writes the header into the first EncapLen bytes of b.
func (e *Encap) Put(b []byte) {
	b = b[:EncapLen]
	binary.BigEndian.PutUint16(b, encapMagic)
	b[2], b[3] = encapVersion, byte(e.Type)
	binary.BigEndian.PutUint16(b[4:], e.Src)
	binary.BigEndian.PutUint16(b[6:], e.Dst)
}

// MinPadding is the length of the shortest padding: the last two bytes are its length.
const MinPadding = 2

// PutPadding turns the datagram b into one of type EncapPadded: the bytes from size on become padding.
func PutPadding(b []byte, size int) {
	clear(b[size:])
	binary.BigEndian.PutUint16(b[len(b)-2:], uint16(len(b)-size))
	b[3] = byte(EncapPadded)
}

// Unpad returns the TRP packet in b, which follows the header of a padded datagram.
func Unpad(b []byte) ([]byte, error) {
	if len(b) < MinPadding {
		return nil, ErrPadding
	}
	n := int(binary.BigEndian.Uint16(b[len(b)-2:]))
	if n < MinPadding || n > len(b) {
		return nil, ErrPadding
	}
	return b[:len(b)-n], nil
}

// PathProbe follows the encapsulation header of a probe and of its answer. Zeros behind it give the datagram the
// length to be tried. An answer is as long as its probe.
type PathProbe struct {
	Nonce uint32 // chosen by the sender of the probe
	Most  uint16 // the largest datagram that the sender of this message accepts, in bytes
}

// PathProbeLen is the length of a probe without its padding.
const PathProbeLen = 8

// Parse reads b, which follows an encapsulation header.
func (p *PathProbe) Parse(b []byte) error {
	if len(b) < PathProbeLen {
		return ErrProbeShort
	}
	*p = PathProbe{binary.BigEndian.Uint32(b), binary.BigEndian.Uint16(b[4:])}
	return nil
}

// Put writes the probe and sets the rest of b to 0.
func (p *PathProbe) Put(b []byte) {
	clear(b)
	binary.BigEndian.PutUint32(b, p.Nonce)
	binary.BigEndian.PutUint16(b[4:], p.Most)
}
