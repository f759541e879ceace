package fabric

import "encoding/binary"

// Size is the bytes of a MAD that is not one of RMPP, which can be longer.
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
	MethodResponse    = 0x80 // the bit that answers have
	methodGetResp     = MethodGet | MethodResponse
)

// status is that of an answer (the upper byte is subnet administration's).
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
	directionBit                   = 0x8000 // of a directed route, beside the status
	permissiveLID           uint16 = 0xffff
	smpData, smpDataEnd            = 64, 128 // the attribute of a SMP; other classes of ours have theirs up to the end
	initialPath, returnPath        = 128, 192
	maxHops                        = 63
	offHopPointer, offHops         = 6, 7
	offDrSLID, offDrDLID           = 32, 34
	offAttributeOffset             = 44
	offMask, adminData             = 48, 56
	offRMPP                        = 24
)

// MAD is a management datagram as it is on the wire, big-endian, at least Size bytes.
type MAD []byte

// Class is the management class.
func (m MAD) Class() byte { return m[1] }

// Version is the version of the class.
func (m MAD) Version() byte { return m[2] }

// Method is the method, with MethodResponse in answers.
func (m MAD) Method() byte { return m[3] }

// Response reports whether the MAD answers another.
func (m MAD) Response() bool {
	return m[3]&MethodResponse != 0 || m[3] == MethodTrapRepress
}

// Transaction is the id that an answer repeats.
func (m MAD) Transaction() uint64 { return binary.BigEndian.Uint64(m[8:]) }

// SetTransaction changes the id.
func (m MAD) SetTransaction(id uint64) { binary.BigEndian.PutUint64(m[8:], id) }

// Subnet reports whether the MAD is subnet management's, which goes to queue pair 0.
func (m MAD) Subnet() bool { return m.Class() == ClassSubnet || m.Class() == ClassDirected }

func (m MAD) attribute() uint16 { return binary.BigEndian.Uint16(m[16:]) }
func (m MAD) modifier() uint32  { return binary.BigEndian.Uint32(m[20:]) }
func (m MAD) mask() uint64      { return binary.BigEndian.Uint64(m[offMask:]) }
func (m MAD) directed() bool    { return m.Class() == ClassDirected }
func (m MAD) returning() bool   { return m[4]&(directionBit>>8) != 0 }
func (m MAD) drSLID() uint16    { return binary.BigEndian.Uint16(m[offDrSLID:]) }
func (m MAD) drDLID() uint16    { return binary.BigEndian.Uint16(m[offDrDLID:]) }

// setStatus leaves what a directed route has beside it.
func (m MAD) setStatus(s status) {
	if m.directed() {
		s |= directionBit
	}
	binary.BigEndian.PutUint16(m[4:], uint16(s))
}

// answer makes of a request its answer, with the request's contents.
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

// Unclaimed is how a port answers a request that nobody there has an agent for: nil,
// not at all, unless it asks or sets.
func Unclaimed(m MAD) MAD {
	if len(m) < Size || m.Method() != MethodGet && m.Method() != MethodSet {
		return nil
	}
	return m.answer(statusBadAttribute)
}
