package fabric

import "encoding/binary"

const adminVersion = 2

// administration answers a request of a port to the subnet administration (SA).
func (s *Subnet) administration(from *endpoint, m MAD) MAD {
	switch m.Method() {
	case MethodGet, MethodGetTable, MethodSet, MethodDelete, methodGetMulti:
	case methodGetTraceTable:
		return m.answer(statusBadMethod)
	default:
		return nil
	}
	if m.Version() != adminVersion {
		return m.answer(statusBadVersion)
	}
	if m.key() != 0 && !m.trusted() { // as opensm does: guesses learn nothing
		return nil
	}
	if m.Method() == MethodSet || m.Method() == MethodDelete {
		return s.change(from, m)
	}
	if m.Method() == methodGetMulti {
		if m.attribute() != attrMultiPath {
			return m.answer(statusBadAttribute)
		}
		return s.multiPath(m)
	}
	if m.attribute() == attrClassPortInfo {
		if m.Method() != MethodGet {
			return m.answer(statusBadAttribute)
		}
		r := m.answer(statusOK)
		clear(r[adminData:])
		r[adminData], r[adminData+1], r[adminData+7] = 1, adminVersion, 16 // RespTimeValue: 0.27 s
		return r
	}
	kind := records[m.attribute()]
	if kind == nil {
		return m.answer(statusBadAttribute)
	}
	if m.mask()>>len(kind.components) != 0 {
		return m.answer(statusInvalidRequest)
	}
	q := &query{kind: kind, mask: m.mask(), modifier: m.modifier(), want: m[adminData:Size], trusted: m.trusted()}
	kind.each(s, q)
	return q.answer(m)
}

// adminKey is the SM_Key of those who are trusted, as opensm has it unless it is told another;
// strangers bring 0.
const adminKey = 1

func (m MAD) key() uint64   { return binary.BigEndian.Uint64(m[offSMKey:]) }
func (m MAD) trusted() bool { return m.key() == adminKey }

// change answers a Set or a Delete.
func (s *Subnet) change(from *endpoint, m MAD) MAD {
	switch attribute := m.attribute(); {
	case attribute == attrMemberRecord:
		return s.membership(m)
	case attribute == attrServiceRecord:
		return s.service(from, m)
	case attribute == attrInformInfo && m.Method() == MethodSet:
		return s.subscribe(from, m)
	}
	return m.answer(statusBadAttribute)
}

// answerRecord is the answer to a request of one record.
func (m MAD) answerRecord(record []byte) MAD {
	r := m.answer(statusOK)
	clear(r[adminData:])
	copy(r[adminData:], record)
	binary.BigEndian.PutUint16(r[offAttributeOffset:], uint16((len(record)+7)/8))
	return r
}

// query is a request for records, and what has been found.
type query struct {
	kind     *recordKind
	mask     uint64 // which components of want count
	modifier uint32
	want     []byte
	found    []byte // records, each of kind.stride() bytes
	trusted  bool
	refused  status
}

// component is a field of a record, in bits from its first byte. One with a selector, which
// is the component before it, says how a record's value is to compare.
type component struct {
	at, bits uint
	selector bool
}

// recordKind is a kind of record: its components in the order of ComponentMask, and
// what gives query.add each record that there is.
type recordKind struct {
	size       int
	components []component
	each       func(*Subnet, *query)
}

// stride is the bytes from one record to the next.
func (k *recordKind) stride() int { return (k.size + 7) / 8 * 8 }

// wants reports whether component i counts.
func (q *query) wants(i uint) bool { return q.mask>>i&1 != 0 }

// add takes a record, if the query is for it.
func (q *query) add(record []byte) {
	if !q.takes(record) {
		return
	}
	at := len(q.found)
	q.found = append(q.found, make([]byte, q.kind.stride())...)
	copy(q.found[at:], record)
}

// takes reports whether a record has what the query names.
func (q *query) takes(record []byte) bool {
	for i, c := range q.kind.components {
		if q.wants(uint(i)) && !q.matches(record, i, c) {
			return false
		}
	}
	return true
}

// anyBits, in the modifier of a request for PortInfoRecords, asks for ports that have all
// bits of a CapabilityMask, and perhaps more.
const anyBits = 1 << 31

func (q *query) matches(record []byte, i int, c component) bool {
	if c.bits == 0 { // a selector, which counts with the next component
		return true
	}
	if c.bits > 64 {
		return string(q.want[c.at/8:(c.at+c.bits)/8]) == string(record[c.at/8:(c.at+c.bits)/8])
	}
	want, have := get(q.want, c.at, c.bits), get(record, c.at, c.bits)
	switch {
	case c.selector:
		if !q.wants(uint(i - 1)) {
			return true
		}
		switch get(q.want, c.at-2, 2) {
		case 0:
			return have > want
		case 1:
			return have < want
		case 2:
			return have == want
		}
		return true // the largest there is
	case q.kind == records[attrPortInfoRecord] && i == componentCapabilities && q.modifier&anyBits != 0:
		return have&want == want
	}
	return have == want
}

// maxTable bounds an answer's records: a program's file takes no more at once.
const maxTable = 160 << 10

// answer is what was found, or that nothing was. Of several records a Get answers with
// the first where they are paths, and else with an error.
func (q *query) answer(m MAD) MAD {
	stride := q.kind.stride()
	n := len(q.found) / stride
	switch {
	case q.refused != statusOK:
		return m.answer(q.refused)
	case m.Method() == MethodGetTable && len(q.found) > maxTable:
		return m.answer(statusNoResources)
	case m.Method() == MethodGetTable:
		return q.table(m)
	case n == 0:
		return m.answer(statusNoRecords)
	case n > 1 && q.kind != records[attrPathRecord]:
		return m.answer(statusTooManyRecords)
	}
	return m.answerRecord(q.found[:stride])
}

// Of RMPP: the only segment that a client sees, as every driver puts them
// together.
const (
	rmppVersion, rmppData = 1, 1
	rmppActive            = 1
	rmppWhole             = 7 // active, first, last
	noResponseTime        = 31 << 3
	segmentData           = Size - adminData
	segmentHead           = adminData - offRMPP - 12
)

// ofTable reports whether the MAD is subnet administration's and made of segments.
func (m MAD) ofTable() bool { return m.Class() == ClassAdmin && m[offRMPP+2]&rmppActive != 0 }

// SetTableLength makes the header of RMPP that of n bytes, as the sender of the segments
// does; other MADs stay as they are.
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

// TableLength is how many bytes a client is given: of a single segment of RMPP those that
// its header says.
func (m MAD) TableLength() int {
	if !m.ofTable() || len(m) > Size {
		return len(m)
	}
	n := int(binary.BigEndian.Uint32(m[offRMPP+8:])) - segmentHead + adminData
	return min(max(n, adminData), len(m))
}

// table is the answer to a GetTable.
func (q *query) table(m MAD) MAD {
	r := append(m.answer(statusOK)[:adminData], q.found...)
	copy(r[offRMPP:], []byte{2: noResponseTime | rmppActive, 3: 0})
	r.SetTableLength(len(r))
	stride := q.kind.stride()
	if len(q.found) == 0 {
		stride = 0
	}
	binary.BigEndian.PutUint16(r[offAttributeOffset:], uint16(stride/8))
	return r
}
