package wire

import "encoding/binary"

// UC is the header of a packet between two queue pairs of type UC, with TRP's base header (docs/WIRE.md chapter
// 13). A message is one packet, or several with consecutive PSNs.
type UC struct {
	PSN         PSN
	Dst, Src    QPN
	First, Last bool   // place in the message
	Write       bool   // part of an RDMA Write, otherwise of a Send
	STag        STag   // Write
	TO          uint64 // Write: where this packet's payload is placed
	Immediate   uint32 // in network byte order, as the program stored it; valid in the last packet

	HasImmediate bool
	Solicited    bool
}

const (
	ucLen      = TRPLen + 16
	ucWriteLen = ucLen + 12

	// MaxUCLen is the length of the longest header.
	MaxUCLen = ucWriteLen

	ucFirst     = 1 << 31
	ucLast      = 1 << 30
	ucWrite     = 1 << 29
	ucImmediate = 1 << 28
	ucSolicited = 1 << 27
)

// Parse reads the header at the start of b and returns its length.
func (u *UC) Parse(b []byte) (n int, err error) {
	if len(b) < ucLen {
		return 0, ErrUCShort
	}
	flags := binary.BigEndian.Uint32(b[18:])
	*u = UC{
		PSN:          PSN(binary.BigEndian.Uint32(b[0:])),
		Dst:          QPN(binary.BigEndian.Uint32(b[10:])),
		Src:          QPN(binary.BigEndian.Uint32(b[14:])),
		First:        flags&ucFirst != 0,
		Last:         flags&ucLast != 0,
		Write:        flags&ucWrite != 0,
		HasImmediate: flags&ucImmediate != 0,
		Solicited:    flags&ucSolicited != 0,
		Immediate:    binary.NativeEndian.Uint32(b[22:]),
	}
	switch {
	case TRPOp(b[8]>>4) != OpUC:
		return 0, ErrUCOpcode
	case !u.Write:
		return ucLen, nil
	case len(b) < ucWriteLen:
		return 0, ErrUCShort
	}
	u.STag, u.TO = STag(binary.BigEndian.Uint32(b[26:])), binary.BigEndian.Uint64(b[30:])
	return ucWriteLen, nil
}

// Put writes the header to the start of b and returns its length.
func (u *UC) Put(b []byte) (n int) {
	n = u.Len()
	b = b[:n]
	var flags uint32
	for _, f := range [...]struct {
		set bool
		bit uint32
	}{{u.First, ucFirst}, {u.Last, ucLast}, {u.Write, ucWrite}, {u.HasImmediate, ucImmediate},
		{u.Solicited, ucSolicited}} {
		if f.set {
			flags |= f.bit
		}
	}
	binary.BigEndian.PutUint32(b[0:], uint32(u.PSN))
	binary.BigEndian.PutUint32(b[4:], 0)
	binary.BigEndian.PutUint16(b[8:], uint16(OpUC)<<12)
	binary.BigEndian.PutUint32(b[10:], uint32(u.Dst))
	binary.BigEndian.PutUint32(b[14:], uint32(u.Src))
	binary.BigEndian.PutUint32(b[18:], flags)
	binary.NativeEndian.PutUint32(b[22:], u.Immediate)
	if u.Write {
		binary.BigEndian.PutUint32(b[26:], uint32(u.STag))
		binary.BigEndian.PutUint64(b[30:], u.TO)
	}
	return n
}

// Len is the length of the header.
func (u *UC) Len() int {
	if u.Write {
		return ucWriteLen
	}
	return ucLen
}
