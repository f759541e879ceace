package fabric

import (
	"encoding/binary"
	"maps"
	"slices"
)

// Attributes of subnet administration (IBA table 185).
const (
	attrNodeRecord       = 0x11
	attrPortInfoRecord   = 0x12
	attrSLtoVLRecord     = 0x13
	attrSwitchInfoRecord = 0x14
	attrLFTRecord        = 0x15
	attrMFTRecord        = 0x17
	attrSMInfoRecord     = 0x18
	attrLinkRecord       = 0x20
	attrGUIDInfoRecord   = 0x30
	attrPKeyRecord       = 0x33
	attrPathRecord       = 0x35
	attrVLArbRecord      = 0x36
)

// componentCapabilities is CapabilityMask's of a PortInfoRecord.
const componentCapabilities = 7

// records has a row for every attribute there is.
var records map[uint16]*recordKind

func init() { // a row's function looks at the table
	records = map[uint16]*recordKind{
		attrNodeRecord: {4 + nodeInfoSize + 64, fields(16, 16, 8, 8, 8, 8, 64, 64, 64, 16, 16, 32, 8, 24, 512), (*Subnet).nodeRecords},
		attrPortInfoRecord: {4 + 64, fields(16, 8, 8, 64, 64, 16, 16, 32, 16, 16, 8, 8, 8, 8, 4, 4, 4, 4, -2, 2, -3, 3, 4, 4, 4, 4, 4, 4),
			(*Subnet).portInfoRecords},
		attrSLtoVLRecord:     {16, fields(16, 8, 8), (*Subnet).slToVLRecords},
		attrSwitchInfoRecord: {4 + switchInfoSize, fields(16), (*Subnet).switchInfoRecords},
		attrLFTRecord:        {8 + 64, fields(16, 16), (*Subnet).lftRecords},
		attrMFTRecord:        {8 + 64, fields(16, 4, 3, 9), (*Subnet).mftRecords},
		attrSMInfoRecord:     {4 + smInfoSize, fields(16, 16, 64, 64, 32, 4, 4), (*Subnet).smInfoRecords},
		attrLinkRecord:       {6, fields(16, 8, 8, 16), (*Subnet).linkRecords},
		attrGUIDInfoRecord:   {8 + 64, fields(16, 8), (*Subnet).guidInfoRecords},
		attrPKeyRecord:       {8 + 64, fields(16, 16, 8), (*Subnet).pkeyRecords},
		attrPathRecord:       {64, pathFields(), (*Subnet).pathRecords},
		attrMemberRecord:     {memberSize, memberFields(), (*Subnet).memberRecords},
		attrServiceRecord:    {serviceSize, serviceFields(), (*Subnet).serviceRecords},
		attrInformInfoRecord: {24 + informInfoSize, fields(128, 16), (*Subnet).informInfoRecords},
		attrVLArbRecord:      {8 + 64, fields(16, 8, 8), (*Subnet).vlArbRecords},
	}
}

// fields are components that lie one behind the other, of so many bits each; a negative
// number is of bits between them that are none.
func fields(bits ...int) (list []component) {
	at := uint(0)
	for _, n := range bits {
		if n < 0 {
			at += uint(-n)
			continue
		}
		list = append(list, component{at: at, bits: uint(n)})
		at += uint(n)
	}
	return list
}

// Components of a PathRecord that narrow the search.
const (
	pathDGID, pathSGID, pathDLID, pathSLID = 2, 3, 4, 5
	pathNumb                               = 12
	pathMTU, pathRate, pathLifetime        = 17, 19, 21
)

func pathFields() []component {
	list := fields(8, 56, 128, 128, 16, 16, 1, 3, 20, 8, 8, 1, 7, 16, 12, 4, 2, 6, 2, 6, 2, 6, 8)
	list[0].bits, list[1].bits = 0, 0 // ServiceID: the same way leads to each
	list[pathNumb].bits = 0           // how many are wanted at most: there is one
	for _, i := range []int{pathMTU, pathRate, pathLifetime} {
		list[i].selector, list[i-1].bits = true, 0
	}
	return list
}

func (s *Subnet) nodeRecords(q *query) {
	for e := range s.ends {
		r := make([]byte, q.kind.size)
		binary.BigEndian.PutUint16(r, e.info.lid())
		e.node.putInfo(r[4:], e)
		copy(r[4+nodeInfoSize:], e.node.desc)
		q.add(r)
	}
}

func (s *Subnet) portInfoRecords(q *query) {
	for e := range s.endpoints {
		r := make([]byte, q.kind.size)
		binary.BigEndian.PutUint16(r, e.own().info.lid())
		r[2] = byte(e.num)
		t := target{s: s, node: e.node, in: e, modifier: uint32(e.num), data: r[4:]}
		_ = t.portInfo() // the port is there
		q.add(r)
	}
}

func (s *Subnet) slToVLRecords(q *query) {
	for in := range s.endpoints {
		for _, out := range in.node.ports {
			if out == nil || in.node.kind == channelAdapter && in != out {
				continue
			}
			r := make([]byte, q.kind.size)
			binary.BigEndian.PutUint16(r, in.own().info.lid())
			r[2], r[3] = byte(in.num), byte(out.num)
			q.add(r)
		}
	}
}

// eachSwitch yields the switches, and a record that begins with the LID of each.
func (s *Subnet) eachSwitch(q *query) func(yield func(*node, []byte) bool) {
	return func(yield func(*node, []byte) bool) {
		for _, n := range s.nodes {
			if n.kind != switchNode {
				continue
			}
			r := make([]byte, q.kind.size)
			binary.BigEndian.PutUint16(r, n.ports[0].info.lid())
			if !yield(n, r) {
				return
			}
		}
	}
}

func (s *Subnet) switchInfoRecords(q *query) {
	for n, r := range s.eachSwitch(q) {
		copy(r[4:], n.info[:])
		q.add(r)
	}
}

func (s *Subnet) lftRecords(q *query) {
	for n, r := range s.eachSwitch(q) {
		top := binary.BigEndian.Uint16(n.info[offLinearTop:])
		for block := range int(top)/64 + 1 {
			binary.BigEndian.PutUint16(r[2:], uint16(block))
			copy(r[8:], n.lft[block*64:])
			q.add(r)
		}
	}
}

func (s *Subnet) mftRecords(q *query) {
	for n, r := range s.eachSwitch(q) {
		for _, at := range slices.Sorted(maps.Keys(n.mft)) {
			block := n.mft[at]
			binary.BigEndian.PutUint16(r[2:], uint16(at>>28)<<12|uint16(at&0x1ff))
			copy(r[8:], block[:])
			q.add(r)
		}
	}
}

func (s *Subnet) smInfoRecords(q *query) {
	r := make([]byte, q.kind.size)
	binary.BigEndian.PutUint16(r, s.home.info.lid())
	s.putSMInfo(r[4:])
	q.add(r)
}

func (s *Subnet) linkRecords(q *query) {
	for e := range s.endpoints {
		if !e.joined() {
			continue
		}
		r := make([]byte, q.kind.size)
		binary.BigEndian.PutUint16(r, e.own().info.lid())
		r[2], r[3] = byte(e.num), byte(e.peer.num)
		binary.BigEndian.PutUint16(r[4:], e.peer.own().info.lid())
		q.add(r)
	}
}

func (s *Subnet) guidInfoRecords(q *query) {
	for e := range s.ends {
		r := make([]byte, q.kind.size)
		binary.BigEndian.PutUint16(r, e.info.lid())
		binary.BigEndian.PutUint64(r[8:], e.guid)
		q.add(r)
	}
}

// pkeyRecords are not for strangers (IBA C15-0.1.31, as opensm quotes it).
func (s *Subnet) pkeyRecords(q *query) {
	if !q.trusted {
		q.refused = statusInvalidRequest
		return
	}
	for e := range s.endpoints {
		r := make([]byte, q.kind.size)
		binary.BigEndian.PutUint16(r, e.own().info.lid())
		r[4] = byte(e.num)
		copy(r[8:], e.pkeys[:])
		q.add(r)
	}
}

// vlArbRecords: no port has such a table, having one virtual lane.
func (s *Subnet) vlArbRecords(*query) {}

func (e *endpoint) gid() (g [16]byte) {
	copy(g[:], e.info[8:16])
	binary.BigEndian.PutUint64(g[8:], e.guid)
	return g
}

// Of a PathRecord.
const (
	reversible   = 1 << 7
	exactly      = 2 << 6 // a selector
	rate40       = 7
	pathLifeTime = 18 // 1.07 s
)

// pathRecords yields the ways from each port to each that the request names. It has to name
// one end at least.
func (s *Subnet) pathRecords(q *query) {
	if q.mask&(1<<pathDGID|1<<pathSGID|1<<pathDLID|1<<pathSLID) == 0 && len(s.nodes) > manyNodes {
		q.refused = statusTooFewComponents
		return
	}
	for from := range s.ends {
		if !q.names(from, pathSGID, pathSLID) {
			continue
		}
		for to := range s.ends {
			if q.names(to, pathDGID, pathDLID) && s.reaches(from, to) && s.reaches(to, from) {
				q.add(pathRecord(from, to))
			}
		}
	}
}

// manyNodes is from where on all ways are more than a client can be told at once.
const manyNodes = 48

// names reports whether the request leaves this end open or is for e.
func (q *query) names(e *endpoint, gid, lid uint) bool {
	g := e.gid()
	if c := q.kind.components[gid]; q.wants(gid) && string(q.want[c.at/8:(c.at+c.bits)/8]) != string(g[:]) {
		return false
	}
	c := q.kind.components[lid]
	return !q.wants(lid) || e.has(uint16(get(q.want, c.at, c.bits)))
}

func (s *Subnet) reaches(from, to *endpoint) bool {
	at := s.route(from, to.info.lid(), false, func(*endpoint) {})
	return at != nil && at.own() == to
}

func pathRecord(from, to *endpoint) []byte {
	r := make([]byte, 64)
	dgid, sgid := to.gid(), from.gid()
	copy(r[8:], dgid[:])
	copy(r[24:], sgid[:])
	binary.BigEndian.PutUint16(r[40:], to.info.lid())
	binary.BigEndian.PutUint16(r[42:], from.info.lid())
	r[49] = reversible
	binary.BigEndian.PutUint16(r[50:], defaultPKey)
	r[54] = exactly | min(from.info.mtu(), to.info.mtu())
	r[55] = exactly | rate40
	r[56] = exactly | pathLifeTime
	return r
}
