package wire

import (
	"encoding/binary"
	"math/bits"
)

// Header control bits of a Terminate: what follows its first four bytes.
const (
	termSegmentLen = 0x80 // M: the DDP segment length is valid
	termDDP        = 0x40 // D: the length field and the DDP header are there
	termRDMAP      = 0x20 // R: the RDMAP header is there

	terminateFixedLen = 4
	terminateSegLen   = 2

	// MaxTerminateLen is the longest body Put writes.
	MaxTerminateLen = terminateFixedLen + terminateSegLen + UntaggedLen + ReadRequestLen
)

// Terminate is the body of a Terminate (RFC 5040 section 4.8). DDPHeader and
// ReadRequest are the raw headers of the segment that was refused and alias the
// input after Parse; nil if the message has none.
//
// Layer and type are the high and low nibble of the first byte and M, D, R the
// three high bits of the third, as the RFC draws them and Wireshark reads them.
// On little-endian machines Linux's siw fills both from the other end (FixTerminate),
// and the C urdma the bits; golden_test.go keeps such messages from captures. Read by
// the RFC, the C urdma's still give the right code, and no headers.
type Terminate struct {
	Code        TermCode
	HasDDPLen   bool   // M: SegmentLen is valid
	SegmentLen  uint16 // length of the refused DDP segment; we count its header, siw doesn't
	DDPHeader   []byte // 14 or 18 bytes
	ReadRequest []byte // 28 bytes, if the segment was a Read Request
}

// Parse reads b, the whole body. Bytes after what the control bits announce
// are ignored: nothing is placed from a Terminate and the stream ends anyway.
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

// takeDDP takes the DDP header at offset n; its own first bit says how long it
// is, whatever error it was refused for.
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

// takeReadRequest takes the RDMAP header at offset n. Read Requests alone have
// one (RFC 5040 section 4.8), so it never stands without a DDP header.
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

// FixTerminate gives a body with siw's order of bits, which has a control bit where the
// RFC has reserved ones, the RFC's.
func FixTerminate(b []byte) {
	if len(b) < terminateFixedLen || b[2] == 0 || b[2] > 7 {
		return
	}
	b[0], b[2] = b[0]<<4|b[0]>>4, bits.Reverse8(b[2])
}

// Put writes the body; b has room for MaxTerminateLen bytes.
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
