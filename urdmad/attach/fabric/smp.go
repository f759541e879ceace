package fabric

import "encoding/binary"

// Attributes of subnet management.
const (
	attrNodeDescription = 0x10
	attrNodeInfo        = 0x11
	attrSwitchInfo      = 0x12
	attrGUIDInfo        = 0x14
	attrPortInfo        = 0x15
	attrPKeyTable       = 0x16
	attrSLtoVL          = 0x17
	attrVLArbitration   = 0x18
	attrLFT             = 0x19
	attrMFT             = 0x1b
	attrSMInfo          = 0x20

	attrNotice = 0x02 // in traps
)

// target is an attribute of a node, as addressed by an SMP that arrived at port in.
type target struct {
	s         *Subnet
	node      *node
	in        *endpoint
	attribute uint16
	modifier  uint32
	data      []byte // smpDataEnd - smpData bytes
}

// subnetManagement is the subnet management agent (SMA) of every node, and our subnet manager on
// its own node. Packets for a subnet manager on a device's port are not taken.
func (s *Subnet) subnetManagement(at *endpoint, m MAD) (answer MAD, taken bool) {
	set := m.Method() == MethodSet
	switch {
	case !set && m.Method() != MethodGet, m.attribute() == attrSMInfo && at.own() != s.home:
		return nil, at.device < 0
	case m.Version() != 1:
		return m.answer(statusBadVersion), true
	}
	r := m.answer(statusOK)
	t := target{s, at.node, at, m.attribute(), m.modifier(), r[smpData:smpDataEnd]}
	st := statusOK
	if set {
		st = t.set()
	}
	if st == statusOK {
		clear(t.data)
		st = t.get()
	}
	if st == statusOK && set {
		s.sweep()
	}
	r.setStatus(st)
	return r, true
}

// get writes the attribute to data, which is zeroed.
func (t *target) get() status {
	switch t.attribute {
	case attrNodeDescription:
		copy(t.data, t.node.desc)
	case attrNodeInfo:
		t.node.putInfo(t.data, t.in)
	case attrSMInfo:
		t.s.putSMInfo(t.data)
	case attrPortInfo:
		e := t.port()
		if e == nil {
			return statusBadValue
		}
		e.putInfo(t.data, t.in)
	case attrGUIDInfo:
		if t.modifier == 0 {
			binary.BigEndian.PutUint64(t.data, t.in.own().guid)
		}
	case attrSLtoVL, attrVLArbitration: // all service levels use virtual lane 0, the only one
	default:
		b, st := t.stored()
		copy(t.data, b)
		return st
	}
	return statusOK
}

// set sets the attribute from data.
func (t *target) set() status {
	switch t.attribute {
	case attrSLtoVL, attrVLArbitration:
		return statusOK
	case attrPortInfo:
		if e := t.port(); e != nil {
			return e.set((*portInfo)(t.data))
		}
		return statusBadValue
	}
	b, st := t.stored()
	if t.attribute == attrSwitchInfo && st == statusOK {
		if binary.BigEndian.Uint16(t.data[offLinearTop:]) >= lftSize {
			return statusBadValue
		}
		copy(t.data, b[:offLinearTop]) // these fields cannot be set
		t.data[offLifeTime] &^= 1<<stateBits - 1
	}
	copy(b, t.data)
	return st
}

// stored returns the bytes of an attribute that is stored unchanged.
func (t *target) stored() ([]byte, status) {
	n, block := t.node, int(t.modifier&0xffff)
	var table []byte
	switch t.attribute {
	case attrSwitchInfo:
		table, block = n.info, 0
	case attrPKeyTable:
		e := t.in
		if n.kind == switchNode {
			e = n.port(int(t.modifier >> 16))
		}
		if e == nil {
			return nil, statusBadValue
		}
		table = e.pkeys[:]
	case attrLFT:
		table = n.lft
	case attrMFT: // 16 ports by position, 32 groups a block
		table = n.mft
		if block = int(t.modifier>>28)*multicastLIDs/32 + block; t.modifier&0x0fffffe0 != 0 {
			return nil, statusBadValue
		}
	}
	const size = smpDataEnd - smpData
	switch {
	case len(table) == 0:
		return nil, statusBadAttribute
	case block*size >= len(table):
		return nil, statusBadValue
	}
	return table[block*size : min((block+1)*size, len(table))], statusOK
}

// port returns the port in the modifier's low byte; for a channel adapter 0 means the port that
// received the request.
func (t *target) port() *endpoint {
	num := int(t.modifier & 0xff)
	if num == 0 && t.node.kind == channelAdapter {
		num = t.in.num
	}
	return t.node.port(num)
}

const nodeInfoSize = 40

// putInfo writes NodeInfo (IBA table 152) of a node for a request at port in.
func (n *node) putInfo(b []byte, in *endpoint) {
	b[0], b[1], b[2] = 1, 1, byte(n.kind)
	b[3] = byte(len(n.ports) - 1)
	binary.BigEndian.PutUint64(b[4:], n.guid)
	binary.BigEndian.PutUint64(b[12:], n.guid)
	binary.BigEndian.PutUint64(b[20:], in.own().guid)
	binary.BigEndian.PutUint16(b[28:], pkeys)
	binary.BigEndian.PutUint16(b[30:], deviceID)
	binary.BigEndian.PutUint32(b[32:], revision)
	binary.BigEndian.PutUint32(b[36:], uint32(in.num)<<24|vendorID)
}

// putInfo writes PortInfo for a request at port in. A switch's ports other than 0 have no LID.
func (e *endpoint) putInfo(b []byte, in *endpoint) {
	copy(b, e.info[:])
	b[offLocalPort] = byte(in.num)
	if e.node.kind == switchNode && e.num != 0 {
		clear(b[offLID:offCapabilities])
	}
}

// Fields of SwitchInfo (IBA table 157).
const (
	switchInfoSize = 20
	offLinearTop   = 6
	offDefaultPort = 8
	offLifeTime    = 11
	stateBits      = 3 // PortStateChange and others, in the byte of LifeTimeValue
	multicastLIDs  = 1024
)

func newSwitchInfo() []byte {
	b := make([]byte, switchInfoSize)
	binary.BigEndian.PutUint16(b[0:], lftSize)
	binary.BigEndian.PutUint16(b[4:], multicastLIDs)
	b[offDefaultPort], b[offDefaultPort+1], b[offDefaultPort+2] = noPort, noPort, noPort
	b[offLifeTime] = 18 << stateBits
	return b
}

// pkeys is the number of P_Keys of a port: one, as in verbs.
const pkeys = 1
