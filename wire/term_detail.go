package wire

import "encoding/binary"

// TermDetailLen is the length of a TermDetail in bytes.
const TermDetailLen = 8

var termDetailMagic = [2]byte{0x75, 0x77}

// TermDetail follows the body of a Terminate between two urdmads and gives more of the cause than the Terminate's
// code (docs/WIRE.md chapter 6). Other peers ignore it.
type TermDetail struct {
	Kind  uint16 // 0: none
	Value uint32 // meaning depends on Kind
}

// Put writes the detail. b must have room for TermDetailLen bytes.
func (d *TermDetail) Put(b []byte) int {
	copy(b, termDetailMagic[:])
	binary.BigEndian.PutUint16(b[2:], d.Kind)
	binary.BigEndian.PutUint32(b[4:], d.Value)
	return TermDetailLen
}

// ParseTermDetail reads b, the bytes behind the body of a Terminate. It returns the zero TermDetail if b holds
// none.
func ParseTermDetail(b []byte) TermDetail {
	if len(b) < TermDetailLen || [2]byte(b) != termDetailMagic {
		return TermDetail{}
	}
	return TermDetail{Kind: binary.BigEndian.Uint16(b[2:]), Value: binary.BigEndian.Uint32(b[4:])}
}
