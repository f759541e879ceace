package wire

import "encoding/binary"

// TermDetailLen is the length of a TermDetail in bytes.
const TermDetailLen = 8

var termDetailMagic = [2]byte{0x75, 0x77}

// TermDetail stands behind the body of a Terminate between urdmads, and says more of the
// cause than its code (docs/WIRE.md chapter 6). Others ignore it.
type TermDetail struct {
	Kind  uint16 // 0: none
	Value uint32 // as the kind says
}

// Put writes the detail; b has room for TermDetailLen bytes.
func (d *TermDetail) Put(b []byte) int {
	copy(b, termDetailMagic[:])
	binary.BigEndian.PutUint16(b[2:], d.Kind)
	binary.BigEndian.PutUint32(b[4:], d.Value)
	return TermDetailLen
}

// ParseTermDetail reads b, what is behind the body of a Terminate; the zero TermDetail if
// that is none.
func ParseTermDetail(b []byte) TermDetail {
	if len(b) < TermDetailLen || [2]byte(b) != termDetailMagic {
		return TermDetail{}
	}
	return TermDetail{Kind: binary.BigEndian.Uint16(b[2:]), Value: binary.BigEndian.Uint32(b[4:])}
}
