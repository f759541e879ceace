package roce

import (
	"encoding/binary"
	"errors"

	"urdma/wire"
)

// Port is the destination UDP port number of RoCEv2 packets.
const Port = 4791

// SourcePort is the source UDP port number of packets to a queue pair. It differs between queue pairs, so that
// routers spread them over equal-cost paths. Its lowest bits are those of the queue pair number: by them the
// receiving network card finds the worker (wire.WorkerOf).
func SourcePort(to wire.QPN) uint16 { return 0xc000 | uint16(to)&0x3fff }

const (
	// BTHLen is the length of the base transport header.
	BTHLen = 12
	// ICRCLen is the length of the CRC at the end of every packet.
	ICRCLen = 4
	// DefaultPKey is the partition key of every queue pair.
	DefaultPKey = 0xffff

	rethLen      = 16
	atomicLen    = 28
	aethLen      = 4
	atomicAckLen = 8
	dethLen      = 8
	xrcLen       = 4
	wordLen      = 4 // ImmDt, IETH

	// MaxHeaderLen is the longest header: an XRC atomic.
	MaxHeaderLen = BTHLen + xrcLen + atomicLen
)

// Header is the base transport header and the extension headers of a packet. Put ignores fields of extension
// headers that the opcode does not have; Parse leaves them alone.
type Header struct {
	Opcode    Opcode
	Solicited bool
	Migrated  bool // MigReq
	Pad       uint8
	PKey      uint16
	FECN      bool
	BECN      bool
	Dst       wire.QPN
	AckReq    bool
	PSN       PSN

	AETH      AETH
	VA        uint64 // RETH, AtomicETH
	RKey      wire.STag
	Length    uint32 // RETH
	Swap      uint64 // AtomicETH: what is stored or added
	Compare   uint64
	Original  uint64    // AtomicAckETH
	QKey      uint32    // DETH
	Src       wire.QPN  // DETH
	SRQ       uint32    // XRCETH
	Immediate uint32    // ImmDt, as the program stored it: network byte order
	Dead      wire.STag // IETH: the key to invalidate
}

// Errors of packets. A packet with such an error is dropped and counted; its sender isn't told.
var (
	ErrShort   = errors.New("roce: packet shorter than its headers and CRC")
	ErrVersion = errors.New("roce: transport header version is not 0")
	ErrOpcode  = errors.New("roce: opcode that nobody has")
	ErrPadding = errors.New("roce: padding longer than the payload")
	ErrAligned = errors.New("roce: payload and padding are no whole number of 4-byte words")
	ErrICRC    = errors.New("roce: invariant CRC wrong")
	ErrOptions = errors.New("roce: IP header with options")
)

// Errors lists the errors of packets, for counters.
var Errors = []error{ErrShort, ErrVersion, ErrOpcode, ErrPadding, ErrAligned, ErrICRC, ErrOptions}

// Bits of the second, ninth and fifth byte.
const (
	bitSolicited = 1 << 7
	bitMigrated  = 1 << 6
	bitAckReq    = 1 << 7
	bitFECN      = 1 << 7
	bitBECN      = 1 << 6
)

// Payload parses the header of a UDP payload of length bytes, CRC included, and returns where the message's bytes
// begin and end in it. head holds its first bytes, up to MaxHeaderLen.
func (h *Header) Payload(head []byte, length int) (from, to int, err error) {
	n, err := h.Parse(head)
	if err != nil {
		return 0, 0, err
	}
	to = length - ICRCLen
	switch {
	case to < n:
		return 0, 0, ErrShort
	case (to-n)%wordLen != 0:
		return 0, 0, ErrAligned
	case to-n < int(h.Pad):
		return 0, 0, ErrPadding
	}
	return n, to - int(h.Pad), nil
}

// Parse reads the headers at the start of b and returns their length.
func (h *Header) Parse(b []byte) (n int, err error) {
	if len(b) < BTHLen {
		return 0, ErrShort
	}
	h.Opcode = Opcode(b[0])
	h.Solicited, h.Migrated = b[1]&bitSolicited != 0, b[1]&bitMigrated != 0
	h.Pad = b[1] >> 4 & 3
	h.PKey = binary.BigEndian.Uint16(b[2:])
	h.FECN, h.BECN = b[4]&bitFECN != 0, b[4]&bitBECN != 0
	h.Dst = wire.QPN(binary.BigEndian.Uint32(b[4:]) & psnMask)
	h.AckReq = b[8]&bitAckReq != 0
	h.PSN = PSN(binary.BigEndian.Uint32(b[8:]) & psnMask)
	t := h.Opcode.Traits()
	switch {
	case b[1]&15 != 0:
		return 0, ErrVersion
	case t == 0:
		return 0, ErrOpcode
	case len(b) < t.headerLen():
		return 0, ErrShort
	}
	return h.parse(b, t), nil
}

func (h *Header) parse(b []byte, t Traits) (n int) {
	n = BTHLen
	if t.Is(hasDETH) {
		h.QKey, h.Src = binary.BigEndian.Uint32(b[n:]), wire.QPN(binary.BigEndian.Uint32(b[n+4:])&psnMask)
		n += dethLen
	}
	if t.Is(hasXRCETH) {
		h.SRQ = binary.BigEndian.Uint32(b[n:]) & psnMask
		n += xrcLen
	}
	if t.Is(hasRETH) {
		h.VA, h.RKey, h.Length = binary.BigEndian.Uint64(b[n:]), wire.STag(binary.BigEndian.Uint32(b[n+8:])),
			binary.BigEndian.Uint32(b[n+12:])
		n += rethLen
	}
	if t.Is(hasAtomicETH) {
		h.VA, h.RKey = binary.BigEndian.Uint64(b[n:]), wire.STag(binary.BigEndian.Uint32(b[n+8:]))
		h.Swap, h.Compare = binary.BigEndian.Uint64(b[n+12:]), binary.BigEndian.Uint64(b[n+20:])
		n += atomicLen
	}
	if t.Is(hasAETH) {
		h.AETH.Syndrome, h.AETH.MSN = Syndrome(b[n]), binary.BigEndian.Uint32(b[n:])&psnMask
		n += aethLen
	}
	if t.Is(hasAtomicAckETH) {
		h.Original = binary.BigEndian.Uint64(b[n:])
		n += atomicAckLen
	}
	if t.Is(HasImmediate) {
		h.Immediate = binary.NativeEndian.Uint32(b[n:])
		n += wordLen
	}
	if t.Is(HasInvalidate) {
		h.Dead = wire.STag(binary.BigEndian.Uint32(b[n:]))
		n += wordLen
	}
	return n
}

// Put writes the headers to the start of b and returns their length. The opcode must be an assigned one.
func (h *Header) Put(b []byte) (n int) {
	t := h.Opcode.Traits()
	b = b[:t.headerLen()]
	b[0] = uint8(h.Opcode)
	b[1] = h.Pad&3<<4 | bit(h.Solicited, bitSolicited) | bit(h.Migrated, bitMigrated)
	binary.BigEndian.PutUint16(b[2:], h.PKey)
	binary.BigEndian.PutUint32(b[4:], uint32(h.Dst))
	b[4] = bit(h.FECN, bitFECN) | bit(h.BECN, bitBECN)
	binary.BigEndian.PutUint32(b[8:], uint32(h.PSN))
	b[8] = bit(h.AckReq, bitAckReq)
	n = BTHLen
	if t.Is(hasDETH) {
		binary.BigEndian.PutUint32(b[n:], h.QKey)
		binary.BigEndian.PutUint32(b[n+4:], uint32(h.Src)&psnMask)
		n += dethLen
	}
	if t.Is(hasXRCETH) {
		binary.BigEndian.PutUint32(b[n:], h.SRQ&psnMask)
		n += xrcLen
	}
	if t.Is(hasRETH) {
		binary.BigEndian.PutUint64(b[n:], h.VA)
		binary.BigEndian.PutUint32(b[n+8:], uint32(h.RKey))
		binary.BigEndian.PutUint32(b[n+12:], h.Length)
		n += rethLen
	}
	if t.Is(hasAtomicETH) {
		binary.BigEndian.PutUint64(b[n:], h.VA)
		binary.BigEndian.PutUint32(b[n+8:], uint32(h.RKey))
		binary.BigEndian.PutUint64(b[n+12:], h.Swap)
		binary.BigEndian.PutUint64(b[n+20:], h.Compare)
		n += atomicLen
	}
	if t.Is(hasAETH) {
		binary.BigEndian.PutUint32(b[n:], h.AETH.MSN)
		b[n] = uint8(h.AETH.Syndrome)
		n += aethLen
	}
	if t.Is(hasAtomicAckETH) {
		binary.BigEndian.PutUint64(b[n:], h.Original)
		n += atomicAckLen
	}
	if t.Is(HasImmediate) {
		binary.NativeEndian.PutUint32(b[n:], h.Immediate)
		n += wordLen
	}
	if t.Is(HasInvalidate) {
		binary.BigEndian.PutUint32(b[n:], uint32(h.Dead))
		n += wordLen
	}
	return n
}

func bit(set bool, b uint8) uint8 {
	if set {
		return b
	}
	return 0
}

// headerLens maps the lowest eight traits to the length of the extension headers.
var headerLens = func() (all [256]uint8) {
	each := [8]uint8{dethLen, xrcLen, rethLen, atomicLen, aethLen, atomicAckLen, wordLen, wordLen}
	for t := range all {
		all[t] = BTHLen
		for i, n := range each {
			if t>>i&1 != 0 {
				all[t] += n
			}
		}
	}
	return all
}()

// headerLen is the length of all headers of a packet with these traits.
func (t Traits) headerLen() int { return int(headerLens[t&255]) }

// Len is the length of the headers.
func (h *Header) Len() int { return h.Opcode.Traits().headerLen() }

// Padding is the number of bytes that pad a payload of n bytes to whole words.
func Padding(n int) int { return -n & 3 }
