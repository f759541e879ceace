package wire

import (
	"encoding/binary"
	"hash/crc32"
)

// MPA carries DDP segments over TCP (RFC 5044, RFC 6581): a request and a reply open a connection, FPDUs follow.

const (
	// MPALen is the length of the fixed part of a request or reply.
	MPALen = 20
	// MaxMPAPrivate is the longest private data, with the four bytes of the enhanced mode.
	MaxMPAPrivate = 512
	// MaxMPADepth is the largest IRD and ORD. It means "not negotiated" (RFC 6581 section 9.1).
	MaxMPADepth = 1<<14 - 1

	mpaEnhancedLen = 4
	mpaKeyLen      = 16
)

const (
	mpaRequestKey = "MPA ID Req Frame"
	mpaReplyKey   = "MPA ID Rep Frame"
)

// Flags in byte 16. Standard peers ignore the low four, which are reserved; siw copies them from a request into its
// reply.
const (
	mpaMarkers   = 0x80
	mpaCRC       = 0x40
	mpaReject    = 0x20
	mpaEnhanced  = 0x10
	mpaLong      = 0x08
	mpaExtension = 0x04
)

// Control flags of the enhanced mode: two in each depth word.
const (
	mpaFlagHigh = 0x8000
	mpaFlagLow  = 0x4000
)

// MPA is a request or a reply.
type MPA struct {
	Reply     bool
	Markers   bool // the sender wants to receive markers
	CRC       bool // the sender wants CRCs, both ways
	Reject    bool // reply: the connection is refused
	Long      bool // the sender accepts FPDUs longer than a TCP segment: private flag of the kernel's siw
	Extension bool // the sender is a urdmad: docs/WIRE.md
	Revision  uint8

	// Enhanced: the fields below are there (revision 2).
	Enhanced   bool
	IRD, ORD   uint16
	PeerToPeer bool // the first FPDU is a "ready to receive" (RTR) of one of these kinds:
	RTRSend    bool
	RTRWrite   bool
	RTRRead    bool

	// PrivateData belongs to the program. After Parse it aliases the input.
	PrivateData []byte
}

// MPAFrameLen returns the length of the request or reply whose first MPALen bytes are b. A stream that does not
// begin with one gives an error at once.
func MPAFrameLen(b []byte, reply bool) (int, error) {
	if len(b) < MPALen {
		return 0, ErrMPAShort
	}
	key := mpaRequestKey
	if reply {
		key = mpaReplyKey
	}
	if string(b[:mpaKeyLen]) != key {
		return 0, ErrMPAKey
	}
	n := int(binary.BigEndian.Uint16(b[18:]))
	if n > MaxMPAPrivate {
		return 0, ErrMPAPrivate
	}
	return MPALen + n, nil
}

// Parse reads the request or reply at the start of b.
func (m *MPA) Parse(b []byte, reply bool) (n int, err error) {
	n, err = MPAFrameLen(b, reply)
	switch {
	case err != nil:
		return 0, err
	case len(b) < n:
		return 0, ErrMPAShort
	}
	f := b[mpaKeyLen]
	*m = MPA{Reply: reply, Markers: f&mpaMarkers != 0, CRC: f&mpaCRC != 0, Reject: f&mpaReject != 0, Long: f&mpaLong != 0,
		Extension: f&mpaExtension != 0, Enhanced: f&mpaEnhanced != 0, Revision: b[17], PrivateData: b[MPALen:n]}
	if !m.Enhanced {
		return n, nil
	}
	if m.Revision < 2 || len(m.PrivateData) < mpaEnhancedLen {
		return 0, ErrMPAEnhanced
	}
	ird, ord := binary.BigEndian.Uint16(m.PrivateData), binary.BigEndian.Uint16(m.PrivateData[2:])
	m.IRD, m.PeerToPeer, m.RTRSend = ird&MaxMPADepth, ird&mpaFlagHigh != 0, ird&mpaFlagLow != 0
	m.ORD, m.RTRWrite, m.RTRRead = ord&MaxMPADepth, ord&mpaFlagHigh != 0, ord&mpaFlagLow != 0
	m.PrivateData = m.PrivateData[mpaEnhancedLen:]
	return n, nil
}

// Append appends the request or reply to b. Private data that is too long is an error.
func (m *MPA) Append(b []byte) ([]byte, error) {
	n := len(m.PrivateData)
	if m.Enhanced {
		n += mpaEnhancedLen
	}
	if n > MaxMPAPrivate {
		return b, ErrMPAPrivate
	}
	key := mpaRequestKey
	if m.Reply {
		key = mpaReplyKey
	}
	b = append(b, key...)
	b = append(b, flagByte(m.Markers, mpaMarkers)|flagByte(m.CRC, mpaCRC)|flagByte(m.Reject, mpaReject)|
		flagByte(m.Enhanced, mpaEnhanced)|flagByte(m.Long, mpaLong)|flagByte(m.Extension, mpaExtension), m.Revision)
	b = binary.BigEndian.AppendUint16(b, uint16(n))
	if m.Enhanced {
		b = binary.BigEndian.AppendUint16(b, depthWord(m.IRD, m.PeerToPeer, m.RTRSend))
		b = binary.BigEndian.AppendUint16(b, depthWord(m.ORD, m.RTRWrite, m.RTRRead))
	}
	return append(b, m.PrivateData...), nil
}

func flagByte(is bool, flag byte) byte {
	if is {
		return flag
	}
	return 0
}

func depthWord(depth uint16, high, low bool) uint16 {
	w := min(depth, MaxMPADepth)
	if high {
		w |= mpaFlagHigh
	}
	if low {
		w |= mpaFlagLow
	}
	return w
}

// FPDUs (RFC 5044 section 4.4): the length of a DDP segment, the segment, zero to three
// bytes of padding, a CRC.
const (
	FPDUHeaderLen = 2
	FPDUCRCLen    = 4
)

// FPDULen is the length of an FPDU with a segment of n bytes.
func FPDULen(n int) int { return (FPDUHeaderLen+n+3)&^3 + FPDUCRCLen }

// FPDUPadding is the number of padding bytes behind a segment of n bytes.
func FPDUPadding(n int) int { return -(FPDUHeaderLen + n) & 3 }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// FPDUCRC continues the CRC of an FPDU over its next bytes: length, segment and padding. The first call takes crc
// 0. The CRC is sent least significant byte first.
func FPDUCRC(crc uint32, b []byte) uint32 { return crc32.Update(crc, castagnoli, b) }
