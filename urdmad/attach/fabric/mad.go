package fabric

import "encoding/binary"

// Size is the length in bytes of a MAD without RMPP; a MAD with RMPP can be longer.
const Size = 256

// Management classes.
const (
	ClassSubnet   = 0x01 // subnet management, LID routed
	ClassAdmin    = 0x03 // subnet administration
	ClassPerf     = 0x04 // performance management
	ClassDirected = 0x81 // subnet management, directed route
)

// Methods.
const (
	MethodGet         = 0x01
	MethodSet         = 0x02
	MethodSend        = 0x03
	MethodTrap        = 0x05
	MethodTrapRepress = 0x07
	methodReport      = 0x06
	MethodGetTable    = 0x12
	MethodResponse    = 0x80 // bit set in answers
	methodGetResp     = MethodGet | MethodResponse
)

// status is the status of an answer; its upper byte is used by subnet administration only.
type status uint16

const (
	statusOK                status = 0
	statusBadVersion        status = 1 << 2
	statusBadAttribute      status = 3 << 2 // or method, for the attribute
	statusBadValue          status = 7 << 2
	statusNoResources       status = 0x0100
	statusNoRecords         status = 0x0300
	statusTooManyRecords    status = 0x0400
	statusInvalidRequest    status = 0x0200
	directionBit                   = 0x8000 // direction bit of a directed route, in the status word
	permissiveLID           uint16 = 0xffff
	smpData, smpDataEnd            = 64, 128 // attribute of an SMP; in other classes it extends to the end
	initialPath, returnPath        = 128, 192
	maxHops                        = 63
	offHopPointer, offHops         = 6, 7
	offDrSLID, offDrDLID           = 32, 34
	offAttributeOffset             = 44
	offMask, adminData             = 48, 56
	offRMPP                        = 24
)

// MAD is a management datagram in wire format, big-endian, at least Size bytes long.
type MAD []byte

// Class returns the management class.
func (m MAD) Class() byte { return m[1] }

// Version returns the class version.
func (m MAD) Version() byte { return m[2] }

// Method returns the method; answers have MethodResponse set.
func (m MAD) Method() byte { return m[3] }

// Response reports whether the MAD answers another.
func (m MAD) Response() bool {
	return m[3]&MethodResponse != 0 || m[3] == MethodTrapRepress
}

// Transaction returns the transaction ID, which an answer repeats.
func (m MAD) Transaction() uint64 { return binary.BigEndian.Uint64(m[8:]) }

// SetTransaction changes the transaction ID.
func (m MAD) SetTransaction(id uint64) { binary.BigEndian.PutUint64(m[8:], id) }

// Subnet reports whether the MAD belongs to subnet management, which uses queue pair 0.
func (m MAD) Subnet() bool { return m.Class() == ClassSubnet || m.Class() == ClassDirected }

func (m MAD) attribute() uint16 { return binary.BigEndian.Uint16(m[16:]) }
func (m MAD) modifier() uint32  { return binary.BigEndian.Uint32(m[20:]) }
func (m MAD) mask() uint64      { return binary.BigEndian.Uint64(m[offMask:]) }
func (m MAD) directed() bool    { return m.Class() == ClassDirected }
func (m MAD) returning() bool   { return m[4]&(directionBit>>8) != 0 }
func (m MAD) drSLID() uint16    { return binary.BigEndian.Uint16(m[offDrSLID:]) }
func (m MAD) drDLID() uint16    { return binary.BigEndian.Uint16(m[offDrDLID:]) }

// setStatus sets the status and keeps the direction bit of a directed route.
func (m MAD) setStatus(s status) {
	if m.directed() {
		s |= directionBit
	}
	binary.BigEndian.PutUint16(m[4:], uint16(s))
}

// answer turns a copy of a request into its answer, with the request's contents.
func (m MAD) answer(s status) MAD {
	r := append(MAD(nil), m[:Size]...)
	switch m.Method() {
	case MethodSet:
		r[3] = methodGetResp
	default:
		r[3] |= MethodResponse
	}
	r.setStatus(s)
	if r.directed() {
		r[offHopPointer] = 0
	}
	return r
}

// Unclaimed returns the answer of a port that has no agent for a request: an error for a Get or
// Set, nil (no answer) for others.
func Unclaimed(m MAD) MAD {
	if len(m) < Size || m.Method() != MethodGet && m.Method() != MethodSet {
		return nil
	}
	return m.answer(statusBadAttribute)
}
