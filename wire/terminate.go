package wire

import (
	"encoding/binary"
	"math/bits"
)

// Header control bits of a Terminate: which fields follow its first four bytes.
const (
	termSegmentLen = 0x80 // M: the DDP segment length is valid
	termDDP        = 0x40 // D: the length field and the DDP header are there
	termRDMAP      = 0x20 // R: the RDMAP header is there

	terminateFixedLen = 4
	terminateSegLen   = 2

	// MaxTerminateLen is the longest body Put writes.
	MaxTerminateLen = terminateFixedLen + terminateSegLen + UntaggedLen + ReadRequestLen
)

// Terminate is the body of a Terminate (RFC 5040 section 4.8). DDPHeader and ReadRequest are the raw headers of the
// refused segment. After Parse they alias the input, or are nil if the message has none.
//
// Layer and type are the high and low nibble of the first byte and M, D, R the three high bits of the third, as in
// the RFC and in Wireshark. On little-endian machines Linux's siw fills both in the opposite bit order
// (FixTerminate), and the C urdma only the control bits. golden_test.go has captures of both. A Terminate of the C
// urdma still parses to the right code, without headers.
type Terminate struct {
	Code        TermCode
	HasDDPLen   bool   // M: SegmentLen is valid
	SegmentLen  uint16 // length of the refused DDP segment; we include its header, siw doesn't
	DDPHeader   []byte // 14 or 18 bytes
	ReadRequest []byte // 28 bytes, if the segment was a Read Request
}

// Parse reads b, the whole body. It ignores bytes behind the fields that the control bits announce: a Terminate
// places no data, and the stream ends anyway.
func (t *Terminate) Parse(b []byte) (n int, err error) {
	if len(b) < terminateFixedLen {
		return 0, ErrTerminateShort
	}
	control := b[2]
	p := Terminate{
		Code:      TermCode(binary.BigEndian.Uint16(b)),
		HasDDPLen: control&termSegmentLen != 0,
	}
	n = terminateFixedLen
	if control&(termSegmentLen|termDDP) != 0 {
		if len(b) < n+terminateSegLen {
			return 0, ErrTerminateShort
		}
		p.SegmentLen = binary.BigEndian.Uint16(b[n:])
		n += terminateSegLen
	}
	if control&termDDP != 0 {
		if n, err = p.takeDDP(b, n); err != nil {
			return 0, err
		}
	}
	if control&termRDMAP != 0 {
		if n, err = p.takeReadRequest(b, n); err != nil {
			return 0, err
		}
	}
	*t = p
	return n, nil
}

// takeDDP reads the DDP header at offset n. Its first bit determines its length, whatever the error was.
func (t *Terminate) takeDDP(b []byte, n int) (int, error) {
	if len(b) <= n {
		return 0, ErrTerminateShort
	}
	size := UntaggedLen
	if b[n]&ddpTagged != 0 {
		size = TaggedLen
	}
	if len(b) < n+size {
		return 0, ErrTerminateShort
	}
	t.DDPHeader = b[n : n+size : n+size]
	return n + size, nil
}

// takeReadRequest reads the RDMAP header at offset n. Only Read Requests have one (RFC 5040 section 4.8), so a DDP
// header always precedes it.
func (t *Terminate) takeReadRequest(b []byte, n int) (int, error) {
	if t.DDPHeader == nil {
		return 0, ErrTerminateHeaderDDP
	}
	if len(b) < n+ReadRequestLen {
		return 0, ErrTerminateShort
	}
	t.ReadRequest = b[n : n+ReadRequestLen : n+ReadRequestLen]
	return n + ReadRequestLen, nil
}

// FixTerminate changes a body from siw's bit order to the RFC's. It recognizes siw's by a control bit in a place
// that the RFC reserves.
func FixTerminate(b []byte) {
	if len(b) < terminateFixedLen || b[2] == 0 || b[2] > 7 {
		return
	}
	b[0], b[2] = b[0]<<4|b[0]>>4, bits.Reverse8(b[2])
}

// Put writes the body. b must have room for MaxTerminateLen bytes.
func (t *Terminate) Put(b []byte) int {
	binary.BigEndian.PutUint16(b, uint16(t.Code))
	b[2], b[3] = 0, 0
	n := terminateFixedLen
	if t.HasDDPLen {
		b[2] |= termSegmentLen
	}
	if t.HasDDPLen || len(t.DDPHeader) > 0 {
		binary.BigEndian.PutUint16(b[n:], t.SegmentLen)
		n += terminateSegLen
	}
	if len(t.DDPHeader) > 0 {
		b[2] |= termDDP
		n += copy(b[n:], t.DDPHeader)
	}
	if len(t.ReadRequest) > 0 {
		b[2] |= termRDMAP
		n += copy(b[n:], t.ReadRequest)
	}
	return n
}
