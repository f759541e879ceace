package wire

import "encoding/binary"

// Lengths of the RDMAP bodies that are headers.
const (
	ReadRequestLen    = 28 // RFC 5040 section 4.4
	AtomicRequestLen  = 52 // RFC 7306 section 5.2.1
	AtomicResponseLen = 12 // RFC 7306 section 5.2.2
	ImmediateLen      = 8  // RFC 7306 section 6
)

// ReadRequest asks the peer to send Length bytes from its memory at SrcSTag and SrcTO to our memory at SinkSTag and
// SinkTO.
type ReadRequest struct {
	SinkSTag STag
	SinkTO   uint64
	Length   uint32
	SrcSTag  STag
	SrcTO    uint64
}

// Parse reads b, the whole body of a Read Request.
func (r *ReadRequest) Parse(b []byte) (n int, err error) {
	if len(b) < ReadRequestLen {
		return 0, ErrReadRequestShort
	}
	if len(b) > ReadRequestLen {
		return 0, ErrReadRequestLong
	}
	*r = ReadRequest{
		SinkSTag: STag(binary.BigEndian.Uint32(b[0:])),
		SinkTO:   binary.BigEndian.Uint64(b[4:]),
		Length:   binary.BigEndian.Uint32(b[12:]),
		SrcSTag:  STag(binary.BigEndian.Uint32(b[16:])),
		SrcTO:    binary.BigEndian.Uint64(b[20:]),
	}
	return ReadRequestLen, nil
}

// Put writes the body.
func (r *ReadRequest) Put(b []byte) int {
	_ = b[ReadRequestLen-1]
	binary.BigEndian.PutUint32(b[0:], uint32(r.SinkSTag))
	binary.BigEndian.PutUint64(b[4:], r.SinkTO)
	binary.BigEndian.PutUint32(b[12:], r.Length)
	binary.BigEndian.PutUint32(b[16:], uint32(r.SrcSTag))
	binary.BigEndian.PutUint64(b[20:], r.SrcTO)
	return ReadRequestLen
}

// AtomicOp is the operation of an Atomic Request (RFC 7306 section 5.1).
type AtomicOp uint8

const (
	AtomicFetchAdd AtomicOp = 0
	AtomicSwap     AtomicOp = 1
	AtomicCmpSwap  AtomicOp = 2
)

// AtomicRequest asks for one 64-bit operation on the peer's memory.
type AtomicRequest struct {
	Opcode      AtomicOp
	RequestID   uint32
	STag        STag
	TO          uint64
	Data        uint64 // to add or to swap in
	Mask        uint64 // bits to swap, or for an add the highest bit of each field
	Compare     uint64 // CmpSwap
	CompareMask uint64 // CmpSwap
}

// Parse reads b, the whole body of an Atomic Request.
func (a *AtomicRequest) Parse(b []byte) (n int, err error) {
	if len(b) < AtomicRequestLen {
		return 0, ErrAtomicShort
	}
	if len(b) > AtomicRequestLen {
		return 0, ErrAtomicLong
	}
	op := AtomicOp(b[3] & 0xf) // 28 reserved bits precede it
	if op > AtomicCmpSwap {
		return 0, ErrAtomicOpcode
	}
	*a = AtomicRequest{
		Opcode:      op,
		RequestID:   binary.BigEndian.Uint32(b[4:]),
		STag:        STag(binary.BigEndian.Uint32(b[8:])),
		TO:          binary.BigEndian.Uint64(b[12:]),
		Data:        binary.BigEndian.Uint64(b[20:]),
		Mask:        binary.BigEndian.Uint64(b[28:]),
		Compare:     binary.BigEndian.Uint64(b[36:]),
		CompareMask: binary.BigEndian.Uint64(b[44:]),
	}
	return AtomicRequestLen, nil
}

// Put writes the body.
func (a *AtomicRequest) Put(b []byte) int {
	_ = b[AtomicRequestLen-1]
	binary.BigEndian.PutUint32(b[0:], uint32(a.Opcode))
	binary.BigEndian.PutUint32(b[4:], a.RequestID)
	binary.BigEndian.PutUint32(b[8:], uint32(a.STag))
	binary.BigEndian.PutUint64(b[12:], a.TO)
	binary.BigEndian.PutUint64(b[20:], a.Data)
	binary.BigEndian.PutUint64(b[28:], a.Mask)
	binary.BigEndian.PutUint64(b[36:], a.Compare)
	binary.BigEndian.PutUint64(b[44:], a.CompareMask)
	return AtomicRequestLen
}

// AtomicResponse answers an AtomicRequest with the value before the operation.
type AtomicResponse struct {
	RequestID uint32
	Original  uint64
}

// Parse reads b, the whole body of an Atomic Response.
func (a *AtomicResponse) Parse(b []byte) (n int, err error) {
	if len(b) < AtomicResponseLen {
		return 0, ErrAtomicShort
	}
	if len(b) > AtomicResponseLen {
		return 0, ErrAtomicLong
	}
	a.RequestID = binary.BigEndian.Uint32(b[0:])
	a.Original = binary.BigEndian.Uint64(b[4:])
	return AtomicResponseLen, nil
}

// Put writes the body.
func (a *AtomicResponse) Put(b []byte) int {
	_ = b[AtomicResponseLen-1]
	binary.BigEndian.PutUint32(b[0:], a.RequestID)
	binary.BigEndian.PutUint64(b[4:], a.Original)
	return AtomicResponseLen
}

// Immediate is the body of Immediate Data, 64 bits as on the wire. Verbs have 32: these are the first four bytes,
// in the application's byte order, followed by four zeros (the layout of Chelsio's cxgb4).
type Immediate [ImmediateLen]byte

// Parse reads b, the whole body of Immediate Data.
func (i *Immediate) Parse(b []byte) (n int, err error) {
	if len(b) < ImmediateLen {
		return 0, ErrImmediateShort
	}
	if len(b) > ImmediateLen {
		return 0, ErrImmediateLong
	}
	*i = Immediate(b)
	return ImmediateLen, nil
}

// Put writes the body.
func (i *Immediate) Put(b []byte) int {
	_ = b[ImmediateLen-1]
	return copy(b, i[:])
}
