package fabric

import "encoding/binary"

// Attributes of subnet management.
const (
	attrNotice          = 0x02
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
	attrExtendedInfo    = 0x33 // PortInfoExtended
)

// target is an attribute of a node, as a SMP that came by port in names it.
type target struct {
	s        *Subnet
	node     *node
	in       *endpoint
	modifier uint32
	data     []byte // smpDataEnd - smpData bytes
}

// smpAttribute gets an attribute into target.data, or sets it from there.
type smpAttribute struct {
	get, set func(*target) status
}

var smpAttributes = map[uint16]smpAttribute{
	attrNodeDescription: {get: (*target).description},
	attrNodeInfo:        {get: (*target).nodeInfo},
	attrSwitchInfo:      {get: (*target).switchInfo, set: (*target).setSwitchInfo},
	attrGUIDInfo:        {get: (*target).guidInfo},
	attrPortInfo:        {get: (*target).portInfo, set: (*target).setPortInfo},
	attrPKeyTable:       {get: (*target).pkeyTable, set: (*target).setPKeyTable},
	attrSLtoVL:          {get: (*target).slToVL, set: (*target).slToVL},
	attrVLArbitration:   {get: (*target).vlArbitration, set: (*target).vlArbitration},
	attrLFT:             {get: (*target).forwarding, set: (*target).setForwarding},
	attrMFT:             {get: (*target).multicast, set: (*target).setMulticast},
	attrExtendedInfo:    {get: (*target).extendedInfo},
}

// subnetManagement is the agent of every node (SMA), and our subnet manager where it is at
// home. What is for the subnet manager of a device's port is not taken.
func (s *Subnet) subnetManagement(at *endpoint, m MAD) (answer MAD, taken bool) {
	if m.attribute() == attrSMInfo {
		if at.own() != s.home {
			return nil, at.device < 0
		}
		return s.smInfo(m), true
	}
	if m.attribute() == attrNotice && m.Method() == MethodTrap {
		return nil, at.device < 0
	}
	if !at.admits(m) {
		return nil, true
	}
	t := target{s: s, node: at.node, in: at, modifier: m.modifier()}
	switch m.Method() {
	case MethodGet, MethodSet:
	default:
		return nil, at.device < 0
	}
	a, known := smpAttributes[m.attribute()]
	if m.Version() != 1 {
		return m.answer(statusBadVersion), true
	}
	do := a.get
	if m.Method() == MethodSet {
		do = a.set
	}
	if !known || do == nil {
		return m.answer(statusBadAttribute), true
	}
	r := m.answer(statusOK)
	t.data = r[smpData:smpDataEnd]
	if m.Method() == MethodGet {
		clear(t.data)
	}
	st := do(&t)
	if st == statusOK && m.Method() == MethodSet {
		clear(t.data)
		st = a.get(&t)
		s.sweep()
	}
	r.setStatus(st)
	return r, true
}

// admits checks the M_Key: a request without it gets no answer.
func (e *endpoint) admits(m MAD) bool {
	p := &e.own().info
	key := p.mkey()
	return key == 0 || m.mkey() == key || m.Method() == MethodGet && p[offProtectLMC]>>6 < 2
}

func (t *target) description() status {
	copy(t.data, t.node.desc)
	return statusOK
}

const nodeInfoSize = 40

func (t *target) nodeInfo() status {
	t.node.putInfo(t.data, t.in)
	return statusOK
}

// putInfo writes NodeInfo (IBA table 152) of a node that is asked by port in.
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

const switchInfoSize = 20

// Of SwitchInfo (IBA table 157).
const (
	offLinearTop    = 6
	offDefaultPort  = 8
	offLifeTime     = 11
	offMulticastTop = 18
	stateChange     = 1 << 2 // PortStateChange
	multicastLIDs   = 1024
)

func newSwitchInfo() (b [switchInfoSize]byte) {
	binary.BigEndian.PutUint16(b[0:], lftSize)
	binary.BigEndian.PutUint16(b[4:], multicastLIDs)
	b[offDefaultPort], b[offDefaultPort+1], b[offDefaultPort+2] = noPort, noPort, noPort
	b[offLifeTime] = 18 << 3
	return b
}

func (t *target) switchInfo() status {
	if t.node.kind != switchNode {
		return statusBadAttribute
	}
	copy(t.data, t.node.info[:])
	return statusOK
}

func (t *target) setSwitchInfo() status {
	if t.node.kind != switchNode {
		return statusBadAttribute
	}
	b := &t.node.info
	if binary.BigEndian.Uint16(t.data[offLinearTop:]) >= lftSize {
		return statusBadValue
	}
	copy(b[offLinearTop:offLifeTime], t.data[offLinearTop:])
	change := b[offLifeTime] & stateChange &^ t.data[offLifeTime] // written as 1 it is cleared
	b[offLifeTime] = t.data[offLifeTime]&0xf8 | change
	copy(b[offMulticastTop:], t.data[offMulticastTop:switchInfoSize])
	return statusOK
}

// numbered is the port that the modifier's low byte names; of a channel adapter 0 is the
// port that was asked.
func (t *target) numbered() *endpoint {
	num := int(t.modifier & 0xff)
	if num == 0 && t.node.kind == channelAdapter {
		num = t.in.num
	}
	return t.node.port(num)
}

func (t *target) portInfo() status {
	e := t.numbered()
	if e == nil {
		return statusBadValue
	}
	copy(t.data, e.info[:])
	t.data[offLocalPort] = byte(t.in.num)
	if t.node.kind == switchNode && e.num != 0 { // such ports have no LID of their own
		clear(t.data[offLID:offCapabilities])
	}
	return statusOK
}

func (t *target) setPortInfo() status {
	e := t.numbered()
	if e == nil {
		return statusBadValue
	}
	return e.set((*portInfo)(t.data))
}

// extendedInfo: links have no forward error correction, which is all that PortInfoExtended tells of.
func (t *target) extendedInfo() status {
	if t.numbered() == nil {
		return statusBadValue
	}
	return statusOK
}

func (t *target) guidInfo() status {
	e := t.numbered()
	e = e.withGUIDs()
	if e == nil {
		return statusBadValue
	}
	if t.modifier == 0 {
		binary.BigEndian.PutUint64(t.data, e.guid)
	}
	return statusOK
}

// withGUIDs is the port whose table a SMP is for: a node's own.
func (e *endpoint) withGUIDs() *endpoint {
	if e == nil {
		return nil
	}
	return e.own()
}

// pkeys is how many P_Keys a port has: one, which verbs show too.
const pkeys = 1

// tablePort is the port whose P_Keys are meant: of a switch that which the modifier's upper
// half names.
func (t *target) tablePort() *endpoint {
	if t.node.kind == switchNode {
		return t.node.port(int(t.modifier >> 16))
	}
	return t.in
}

func (t *target) pkeyTable() status {
	e := t.tablePort()
	if e == nil {
		return statusBadValue
	}
	if t.modifier&0xffff == 0 {
		copy(t.data, e.pkeys[:])
	}
	return statusOK
}

func (t *target) setPKeyTable() status {
	e := t.tablePort()
	if e == nil || t.modifier&0xffff != 0 {
		return statusBadValue
	}
	copy(e.pkeys[:2*pkeys], t.data)
	return statusOK
}

// slToVL: every service level goes over virtual lane 0, the only one.
func (t *target) slToVL() status {
	clear(t.data)
	return statusOK
}

// vlArbitration: with one lane there is nothing to weigh; VLArbHighCap and VLArbLowCap are 0.
func (t *target) vlArbitration() status {
	clear(t.data)
	return statusOK
}

func (t *target) block() []byte {
	at := int(t.modifier&0xffff) * len(t.data)
	if t.node.kind != switchNode || at >= len(t.node.lft) {
		return nil
	}
	return t.node.lft[at : at+len(t.data)]
}

func (t *target) forwarding() status {
	if t.node.kind != switchNode {
		return statusBadAttribute
	}
	b := t.block()
	if b == nil {
		return statusBadValue
	}
	copy(t.data, b)
	return statusOK
}

func (t *target) setForwarding() status {
	if t.node.kind != switchNode {
		return statusBadAttribute
	}
	b := t.block()
	if b == nil {
		return statusBadValue
	}
	copy(b, t.data)
	return statusOK
}

// multicastBlock reports whether the modifier names a block of the multicast forwarding
// table that there can be: 32 groups each, and 16 ports by position.
func (t *target) multicastBlock() status {
	switch {
	case t.node.kind != switchNode:
		return statusBadAttribute
	case t.modifier&0x1ff >= multicastLIDs/32 || int(t.modifier>>28) > (len(t.node.ports)-1)/16 || t.modifier&0x0ffffe00 != 0:
		return statusBadValue
	}
	return statusOK
}

func (t *target) multicast() status {
	st := t.multicastBlock()
	if st == statusOK {
		b := t.node.mft[t.modifier]
		copy(t.data, b[:])
	}
	return st
}

func (t *target) setMulticast() status {
	st := t.multicastBlock()
	if st == statusOK {
		t.node.mft[t.modifier] = [smpDataEnd - smpData]byte(t.data)
	}
	return st
}
