package fabric

import "encoding/binary"

// Attributes of subnet administration (IBA table 185).
const (
	attrNodeRecord     = 0x11
	attrPortInfoRecord = 0x12
	attrSMInfoRecord   = 0x18
	attrLinkRecord     = 0x20
	attrPathRecord     = 0x35
	attrMemberRecord   = 0x38
)

const adminVersion = 2

// administration answers a request to subnet administration (SA).
func (s *Subnet) administration(m MAD) MAD {
	switch method, attribute := m.Method(), m.attribute(); {
	case method == MethodSend || method == MethodTrap || method == methodReport:
		return nil
	case m.Version() != adminVersion:
		return m.answer(statusBadVersion)
	case attribute == attrClassPortInfo && method == MethodGet:
		return m.answerRecord([]byte{1, adminVersion, 7: responseTime})
	case method == MethodGet || method == MethodGetTable:
		if kind := records[attribute]; kind != nil {
			return s.query(kind, m)
		}
	}
	return m.answer(statusBadAttribute)
}

// recordKind is a type of record.
type recordKind struct {
	size       int
	components []component // in the order of ComponentMask
	each       func(s *Subnet, q *query)
}

// component is a field of a record, in bits from its first byte. A component without bits does
// not restrict a search.
type component struct{ at, bits uint }

// fields returns consecutive components of the given sizes in bits. A component with a negative
// size does not restrict a search.
func fields(bits ...int) (list []component) {
	at := uint(0)
	for _, n := range bits {
		list = append(list, component{at, uint(max(n, 0))})
		at += uint(max(n, -n))
	}
	return list
}

// Components that the code below names.
const (
	pathDGID, pathSGID, pathDLID, pathSLID = 2, 3, 4, 5

	portCapabilities = 7
)

// records has a row for each type of record. There are no multicast group records: ports join
// groups through their hosts (IGMP, MLD).
var records = map[uint16]*recordKind{
	attrNodeRecord: {4 + nodeInfoSize + 64, fields(16, -16, 8, 8, 8, 8, 64, 64, 64, 16, 16, 32, 8, 24, 512),
		(*Subnet).nodeRecords},
	attrPortInfoRecord: {4 + 64, fields(16, 8, -8, 64, 64, 16, 16, 32, 16, 16, 8, 8, 8, 8, 4, 4, 4, 4),
		(*Subnet).portInfoRecords},
	attrSMInfoRecord: {4 + smInfoSize, fields(16, -16, 64, 64, 32, 4, 4), (*Subnet).smInfoRecords},
	attrLinkRecord:   {6, fields(16, 8, 8, 16), (*Subnet).linkRecords},
	attrPathRecord: {64, fields(-8, -56, 128, 128, 16, 16, -1, -3, -20, -8, -8, -1, -7, -16, -12, -4, -2, -6, -2, -6,
		-2, -6, -8), (*Subnet).pathRecords},
	attrMemberRecord: {52, fields(128, 128), func(*Subnet, *query) {}},
}

// query is a request for records, with the records found so far.
type query struct {
	attribute uint16
	kind      *recordKind
	mask      uint64 // components of want that restrict the search
	modifier  uint32
	want      []byte
	found     []byte // records, each of stride bytes
	stride    int
}

// query answers a request for records. If several match, a Get returns the first path, or an
// error for other records.
func (s *Subnet) query(kind *recordKind, m MAD) MAD {
	q := &query{attribute: m.attribute(), kind: kind, mask: m.mask(), modifier: m.modifier(), want: m[adminData:Size],
		stride: (kind.size + 7) / 8 * 8}
	if q.mask>>len(kind.components) != 0 {
		return m.answer(statusInvalidRequest)
	}
	kind.each(s, q)
	switch {
	case len(q.found) > maxTable:
		return m.answer(statusNoResources)
	case m.Method() == MethodGetTable:
		return q.table(m)
	case len(q.found) == 0:
		return m.answer(statusNoRecords)
	case len(q.found) > q.stride && m.attribute() != attrPathRecord:
		return m.answer(statusTooManyRecords)
	}
	return m.answerRecord(q.found[:q.stride])
}

// maxTable is the largest answer, in bytes: a program's file accepts no more at once.
const maxTable = 160 << 10

// record returns a new record of the query's type that begins with the LID of a port, or of its
// switch.
func (q *query) record(e *endpoint) []byte {
	r := make([]byte, q.stride)
	binary.BigEndian.PutUint16(r, e.own().info.lid())
	return r
}

// add adds a record if it matches the query.
func (q *query) add(record []byte) {
	for i := range q.kind.components {
		if !q.matches(record, i) {
			return
		}
	}
	if len(q.found) <= maxTable {
		q.found = append(q.found, record...)
	}
}

// anyBits, in the modifier of a request for PortInfoRecords, asks for ports that have at least
// the given bits of a CapabilityMask.
const anyBits = 1 << 31

// matches reports whether a record has the query's value in component i.
func (q *query) matches(record []byte, i int) bool {
	c := q.kind.components[i]
	switch {
	case q.mask>>i&1 == 0 || c.bits == 0:
		return true
	case c.bits > 64:
		return string(q.want[c.at/8:(c.at+c.bits)/8]) == string(record[c.at/8:(c.at+c.bits)/8])
	}
	want, have := get(q.want, c.at, c.bits), get(record, c.at, c.bits)
	if i == portCapabilities && q.modifier&anyBits != 0 && q.attribute == attrPortInfoRecord {
		have &= want
	}
	return have == want
}

func (s *Subnet) nodeRecords(q *query) {
	for e := range s.ends {
		r := q.record(e)
		e.node.putInfo(r[4:], e)
		copy(r[4+nodeInfoSize:], e.node.desc)
		q.add(r)
	}
}

func (s *Subnet) portInfoRecords(q *query) {
	for e := range s.endpoints {
		r := q.record(e)
		r[2] = byte(e.num)
		e.putInfo(r[4:], e)
		q.add(r)
	}
}

func (s *Subnet) smInfoRecords(q *query) {
	r := q.record(s.home)
	s.putSMInfo(r[4:])
	q.add(r)
}

func (s *Subnet) linkRecords(q *query) {
	for e := range s.endpoints {
		if e.joined() {
			r := q.record(e)
			r[2], r[3] = byte(e.num), byte(e.peer.num)
			binary.BigEndian.PutUint16(r[4:], e.peer.own().info.lid())
			q.add(r)
		}
	}
}

// Values in a PathRecord.
const (
	reversible   = 1 << 7
	exactly      = 2 << 6 // selector "exactly"
	rate40       = 7      // Gb/s
	pathLifeTime = 18     // 1.07 s
)

// pathRecords adds the paths between all pairs of ports that the request names.
func (s *Subnet) pathRecords(q *query) {
	for from := range s.ends {
		r := make([]byte, q.stride)
		gid := from.gid()
		copy(r[24:], gid[:])
		binary.BigEndian.PutUint16(r[42:], from.info.lid())
		if !q.matches(r, pathSGID) || !q.matches(r, pathSLID) || len(q.found) > maxTable {
			continue
		}
		for to := range s.ends {
			gid := to.gid()
			copy(r[8:], gid[:])
			binary.BigEndian.PutUint16(r[40:], to.info.lid())
			r[49] = reversible
			binary.BigEndian.PutUint16(r[50:], defaultPKey)
			r[54], r[55], r[56] = exactly|min(from.info.mtu(), to.info.mtu()), exactly|rate40, exactly|pathLifeTime
			if q.matches(r, pathDGID) && q.matches(r, pathDLID) && s.reaches(from, to) && s.reaches(to, from) {
				q.add(r)
			}
		}
	}
}

func (e *endpoint) gid() (g [16]byte) {
	copy(g[:], e.info[8:16])
	binary.BigEndian.PutUint64(g[8:], e.guid)
	return g
}

func (s *Subnet) reaches(from, to *endpoint) bool {
	at := s.route(from, to.info.lid(), false)
	return at != nil && at.own() == to
}

// answerRecord returns the answer to a request with one record.
func (m MAD) answerRecord(record []byte) MAD {
	r := m.answer(statusOK)
	clear(r[adminData:])
	copy(r[adminData:], record)
	binary.BigEndian.PutUint16(r[offAttributeOffset:], uint16((len(record)+7)/8))
	return r
}

// RMPP header fields. A client sees a single segment, because every driver reassembles them.
const (
	rmppVersion, rmppData = 1, 1
	rmppActive            = 1
	rmppWhole             = 7 // active, first, last
	noResponseTime        = 31 << 3
	segmentData           = Size - adminData
	segmentHead           = adminData - offRMPP - 12
)

// ofTable reports whether the MAD is a subnet administration MAD with RMPP segments.
func (m MAD) ofTable() bool { return m.Class() == ClassAdmin && m[offRMPP+2]&rmppActive != 0 }

// SetTableLength sets the RMPP header's length for a MAD of n bytes, as the sender of the
// segments does. MADs without RMPP stay unchanged.
func (m MAD) SetTableLength(n int) {
	if !m.ofTable() || n < adminData || n > len(m) {
		return
	}
	h, data := m[offRMPP:], n-adminData
	segments := max(1, (data+segmentData-1)/segmentData)
	h[0], h[1], h[2] = rmppVersion, rmppData, h[2]|rmppWhole
	binary.BigEndian.PutUint32(h[4:], 1)
	binary.BigEndian.PutUint32(h[8:], uint32(data+segments*segmentHead))
}

// TableLength returns the number of bytes that a client gets: for a single RMPP segment, the
// length in its header.
func (m MAD) TableLength() int {
	if !m.ofTable() || len(m) > Size {
		return len(m)
	}
	n := int(binary.BigEndian.Uint32(m[offRMPP+8:])) - segmentHead + adminData
	return min(max(n, adminData), len(m))
}

// table returns the answer to a GetTable.
func (q *query) table(m MAD) MAD {
	r := append(m.answer(statusOK)[:adminData], q.found...)
	copy(r[offRMPP:], []byte{2: noResponseTime | rmppActive, 3: 0})
	r.SetTableLength(len(r))
	stride := q.stride
	if len(q.found) == 0 {
		stride = 0
	}
	binary.BigEndian.PutUint16(r[offAttributeOffset:], uint16(stride/8))
	return r
}
