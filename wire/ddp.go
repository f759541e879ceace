package wire

import "encoding/binary"

const (
	TaggedLen   = 14 // control 2, STag 4, TO 8
	UntaggedLen = 18 // control 2, reserved or STag 4, QN 4, MSN 4, MO 4
)

// Control bits (RFC 5041 section 4.1, RFC 5040 section 4.1). The reserved bits, 0x3c of the first byte and 0x30 of
// the second, are sent as 0 and ignored on receipt.
const (
	ddpTagged      = 0x80
	ddpLast        = 0x40
	ddpVersionMask = 0x03
	ddpVersion     = 0x01

	rdmapVersionMask = 0xc0
	rdmapVersion     = 0x40
	rdmapOpcodeMask  = 0x0f
)

// DDP is the header of a DDP segment, with the RDMAP control fields in it.
type DDP struct {
	Tagged bool
	Last   bool
	Op     Opcode
	STag   STag   // tagged: the buffer; Send with Invalidate: the STag to invalidate
	TO     uint64 // tagged: offset in the buffer
	QN     uint32 // untagged: queue
	MSN    MSN    // untagged: message in the queue
	MO     uint32 // untagged: offset in the message
}

// Parse reads the header at the start of b, a whole segment. It checks versions and opcode, and that the opcode
// belongs to the buffer model and the queue. Every error is a *ProtocolError. DDP's checks precede RDMAP's, as a
// segment meets that layer first.
func (d *DDP) Parse(b []byte) (n int, err error) {
	if len(b) < TaggedLen {
		return 0, ErrDDPShort
	}
	if b[0]&ddpTagged != 0 {
		return d.parseTagged(b)
	}
	return d.parseUntagged(b)
}

func (d *DDP) parseTagged(b []byte) (n int, err error) {
	if b[0]&ddpVersionMask != ddpVersion {
		return 0, ErrDDPTaggedVersion
	}
	op, info, err := parseRDMAPControl(b[1])
	if err != nil {
		return 0, err
	}
	if !info.tagged {
		return 0, ErrRDMAPTagged
	}
	*d = DDP{}
	d.Tagged, d.Last, d.Op = true, b[0]&ddpLast != 0, op
	d.STag, d.TO = STag(binary.BigEndian.Uint32(b[2:])), binary.BigEndian.Uint64(b[6:])
	return TaggedLen, nil
}

func (d *DDP) parseUntagged(b []byte) (n int, err error) {
	if b[0]&ddpVersionMask != ddpVersion {
		return 0, ErrDDPUntaggedVersion
	}
	if len(b) < UntaggedLen {
		return 0, ErrDDPShort
	}
	*d = DDP{}
	d.Last, d.STag = b[0]&ddpLast != 0, STag(binary.BigEndian.Uint32(b[2:]))
	d.QN, d.MSN, d.MO = binary.BigEndian.Uint32(b[6:]), MSN(binary.BigEndian.Uint32(b[10:])),
		binary.BigEndian.Uint32(b[14:])
	if d.QN > QueueAtomicResponse {
		return 0, ErrDDPQueue
	}
	op, info, err := parseRDMAPControl(b[1])
	if err != nil {
		return 0, err
	}
	d.Op = op
	if err := info.checkUntagged(d); err != nil {
		return 0, err
	}
	return UntaggedLen, nil
}

// checkUntagged checks the fields of an untagged header that its opcode fixes.
func (info *opcodeInfo) checkUntagged(h *DDP) error {
	switch {
	case info.tagged:
		return ErrRDMAPTagged
	case h.QN != info.queue:
		return ErrRDMAPQueue
	case info.single && h.MO != 0:
		return ErrDDPOffset
	case info.single && !h.Last:
		return ErrDDPNotLast
	}
	return nil
}

func parseRDMAPControl(c byte) (Opcode, *opcodeInfo, error) {
	if c&rdmapVersionMask != rdmapVersion {
		return 0, nil, ErrRDMAPVersion
	}
	op := Opcode(c & rdmapOpcodeMask)
	info := &opcodes[op]
	if info.name == "" {
		return 0, nil, ErrRDMAPOpcode
	}
	return op, info, nil
}

// Put writes the header.
func (d *DDP) Put(b []byte) int {
	control := byte(ddpVersion)
	if d.Last {
		control |= ddpLast
	}
	if d.Tagged {
		_ = b[TaggedLen-1]
		b[0], b[1] = control|ddpTagged, rdmapVersion|byte(d.Op)
		binary.BigEndian.PutUint32(b[2:], uint32(d.STag))
		binary.BigEndian.PutUint64(b[6:], d.TO)
		return TaggedLen
	}
	_ = b[UntaggedLen-1]
	b[0], b[1] = control, rdmapVersion|byte(d.Op)
	binary.BigEndian.PutUint32(b[2:], uint32(d.STag))
	binary.BigEndian.PutUint32(b[6:], d.QN)
	binary.BigEndian.PutUint32(b[10:], uint32(d.MSN))
	binary.BigEndian.PutUint32(b[14:], d.MO)
	return UntaggedLen
}
