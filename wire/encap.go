package wire

import "encoding/binary"

// Encap is the encapsulation header, which precedes a TRP packet between UDP
// sockets (docs/WIRE.md chapter 11): one socket carries all connections of a
// port, and their port numbers travel inside.
type Encap struct {
	Type     EncapType
	Src, Dst uint16 // of the connection
}

// EncapLen is the length of an encapsulation header.
const EncapLen = 8

// EncapType is what follows an encapsulation header.
type EncapType uint8

// The types.
const (
	EncapTRP    EncapType = 0
	EncapProbe  EncapType = 1 // of the path, see PathProbe
	EncapAnswer EncapType = 2 // to a probe
	EncapPadded EncapType = 3 // a TRP packet with padding behind it
)

const (
	encapMagic   = 0x7552
	encapVersion = 1
)

// Parse reads the header of a datagram whose first bytes b holds.
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

// MinPadding is the length of the shortest padding: its last two bytes say how long
// it is.
const MinPadding = 2

// PutPadding makes the datagram b, of which size bytes are in place, one of the
// type EncapPadded: the rest is padding.
func PutPadding(b []byte, size int) {
	clear(b[size:])
	binary.BigEndian.PutUint16(b[len(b)-2:], uint16(len(b)-size))
	b[3] = byte(EncapPadded)
}

// Unpad returns the TRP packet of what follows the header of a padded datagram.
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

// PathProbe follows the encapsulation header of a probe and of its answer; zeros
// behind it give the datagram the length that is tried. An answer is as long as
// its probe.
type PathProbe struct {
	Nonce uint32 // of the sender of the probe
	Most  uint16 // the largest datagram that the sender of this one takes, in bytes
}

// PathProbeLen is the length of a probe without its padding.
const PathProbeLen = 8

// Parse reads what follows an encapsulation header.
func (p *PathProbe) Parse(b []byte) error {
	if len(b) < PathProbeLen {
		return ErrProbeShort
	}
	*p = PathProbe{binary.BigEndian.Uint32(b), binary.BigEndian.Uint16(b[4:])}
	return nil
}

// Put writes it to b, whose rest it sets to 0.
func (p *PathProbe) Put(b []byte) {
	clear(b)
	binary.BigEndian.PutUint32(b, p.Nonce)
	binary.BigEndian.PutUint16(b[4:], p.Most)
}
