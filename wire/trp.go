package wire

import "encoding/binary"

// TRPOp is the opcode of a TRP packet, the top nibble of its fifth 16-bit word.
type TRPOp uint8

const (
	OpData    TRPOp = 0 // a DDP segment, or none: a pure acknowledgement
	OpRequest TRPOp = 1
	OpAccept  TRPOp = 2
	OpReject  TRPOp = 3
	OpFin     TRPOp = 4
	OpSack    TRPOp = 5
	OpRetry   TRPOp = 7 // answers a request with a token that its sender must return, which proves its address

	// OpDatagram belongs to no connection: type Datagram is its header.
	OpDatagram TRPOp = 6
	// OpUC belongs to no connection either: type UC is its header.
	OpUC TRPOp = 8

	OpResolve  TRPOp = 9  // asks which UD queue pair serves a port number
	OpResolved TRPOp = 10 // the answer
)

var trpOpNames = [...]string{"data", "request", "accept", "reject", "fin", "sack", "datagram", "retry", "uc", "resolve",
	"resolved"}

func (op TRPOp) String() string {
	if op.known() {
		return trpOpNames[op]
	}
	return "TRP opcode " + decimal(uint32(op))
}

// known reports whether the opcode is assigned.
func (op TRPOp) known() bool { return int(op) < len(trpOpNames) && trpOpNames[op] != "" }

// IsControl reports whether the opcode sets up a connection. Such packets have the base header only, because they
// are sent before both sides know each other's extensions, or are repetitions.
func (op TRPOp) IsControl() bool {
	return op >= OpRequest && op <= OpReject || op >= OpRetry && op <= OpResolved
}

const (
	TRPLen    = 10 // base header
	TRPExtLen = 16 // base header, flags, cookie

	// MaxCredits is the largest credit count in the 12 bits of the base header, MaxWideCredits in these and the 8
	// more bits of the full header.
	MaxCredits     = 0xfff
	MaxWideCredits = 0xfffff
	creditsBits    = 12
	upperCredits   = 0xff // in the flags

	// FlagAckRequested asks for an acknowledgement without delay.
	FlagAckRequested = 0x8000
)

// TRP is the header between UDP and DDP (docs/WIRE.md). PSN is the number of this segment, or of the next one if
// the packet has no payload. Ack is the next PSN that the sender of the packet expects: all before it have arrived.
type TRP struct {
	PSN     PSN
	Ack     PSN
	Op      TRPOp
	Credits uint32 // segments beyond Ack that the sender of the packet can hold
	Flags   uint16 // not in control packets
	Cookie  uint32 // not in control packets; chosen by the receiver of the packet
}

// headerLen is the length of the header with this opcode.
func (op TRPOp) headerLen() int {
	if op.IsControl() {
		return TRPLen
	}
	return TRPExtLen
}

// Parse reads the header at the start of b.
func (t *TRP) Parse(b []byte) (n int, err error) {
	if len(b) < TRPLen {
		return 0, ErrTRPShort
	}
	word := binary.BigEndian.Uint16(b[8:])
	op := TRPOp(word >> 12)
	if !op.known() || op == OpDatagram || op == OpUC {
		return 0, ErrTRPOpcode
	}
	n = op.headerLen()
	if len(b) < n {
		return 0, ErrTRPShort
	}
	t.PSN, t.Ack = PSN(binary.BigEndian.Uint32(b[0:])), PSN(binary.BigEndian.Uint32(b[4:]))
	t.Op, t.Credits, t.Flags, t.Cookie = op, uint32(word&MaxCredits), 0, 0
	if n == TRPExtLen {
		flags := binary.BigEndian.Uint16(b[10:])
		t.Flags = flags &^ upperCredits
		t.Credits |= uint32(flags&upperCredits) << creditsBits
		t.Cookie = binary.BigEndian.Uint32(b[12:])
	}
	return n, nil
}

// Put writes the header. A credit count that is too large for the field is sent as the largest that fits.
func (t *TRP) Put(b []byte) int {
	n := t.Op.headerLen()
	_ = b[n-1]
	binary.BigEndian.PutUint32(b[0:], uint32(t.PSN))
	binary.BigEndian.PutUint32(b[4:], uint32(t.Ack))
	credits := min(t.Credits, MaxCredits)
	if n == TRPExtLen {
		credits = min(t.Credits, MaxWideCredits)
		binary.BigEndian.PutUint16(b[10:], t.Flags&^upperCredits|uint16(credits>>creditsBits))
		binary.BigEndian.PutUint32(b[12:], t.Cookie)
	}
	binary.BigEndian.PutUint16(b[8:], uint16(t.Op)<<creditsBits|uint16(credits&MaxCredits))
	return n
}

// PeekOp returns the opcode of a TRP packet without further checks. ok is false if b is too short for a header.
func PeekOp(b []byte) (op TRPOp, ok bool) {
	if len(b) < TRPLen {
		return 0, false
	}
	return TRPOp(b[8] >> 4), true
}
