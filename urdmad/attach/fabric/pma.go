package fabric

import (
	"encoding/binary"
	"math"
)

// Attributes of performance management.
const (
	attrClassPortInfo = 0x01
	attrPortCounters  = 0x12
	attrExtended      = 0x1d

	perfData = 64

	// Bits of ClassPortInfo's CapabilityMask.
	capAllPortSelect = 1 << 8
	capExtendedWidth = 1 << 9

	allPorts     = 0xff
	responseTime = 16 // RespTimeValue: 0.27 s
)

// counter identifies a counter of a port.
type counter int

const (
	symbolErrors counter = iota
	linkErrorRecovery
	linkDowned
	rcvErrors
	rcvRemotePhysicalErrors
	rcvSwitchRelayErrors
	xmitDiscards
	xmitConstraintErrors
	rcvConstraintErrors
	localLinkIntegrityErrors
	bufferOverrunErrors
	vl15Dropped
	xmitData
	rcvData
	xmitPackets
	rcvPackets
	unicastXmitPackets
	unicastRcvPackets
	numCounters
)

// counts are the values of all counters.
type counts [numCounters]uint64

// counts converts urdmad's counters; other events cannot happen here. Data are counted in words
// of four bytes.
func (c *Counters) counts() (v counts) {
	const word = 4
	v[linkDowned], v[rcvErrors], v[xmitDiscards] = c.LinkDowns, c.RxErrors, c.TxDropped
	v[xmitData], v[rcvData] = c.TxBytes/word, c.RxBytes/word
	v[xmitPackets], v[rcvPackets] = c.TxPackets, c.RxPackets
	v[unicastXmitPackets], v[unicastRcvPackets] = c.TxPackets, c.RxPackets
	return v
}

// counts returns the values of all of a port's counters.
func (e *endpoint) counts() counts {
	v := e.counters.counts()
	for i, n := range e.errors {
		v[i] += n
	}
	return v
}

// counterField is the position of a counter in an attribute, in bits from the first byte.
type counterField struct {
	counter  counter
	selected uint // its bit in CounterSelect
	at, bits uint
}

// counterAttributes are PortCounters (table 247) and PortCountersExtended (262), in the order of
// endpoint.cleared. Counters that a port does not have stay zero.
var counterAttributes = [...][]counterField{
	{{symbolErrors, 0, 32, 16}, {linkErrorRecovery, 1, 48, 8}, {linkDowned, 2, 56, 8}, {rcvErrors, 3, 64, 16},
		{rcvRemotePhysicalErrors, 4, 80, 16}, {rcvSwitchRelayErrors, 5, 96, 16}, {xmitDiscards, 6, 112, 16},
		{xmitConstraintErrors, 7, 128, 8}, {rcvConstraintErrors, 8, 136, 8}, {localLinkIntegrityErrors, 9, 152, 4},
		{bufferOverrunErrors, 10, 156, 4}, {vl15Dropped, 11, 176, 16}, {xmitData, 12, 192, 32}, {rcvData, 13, 224, 32},
		{xmitPackets, 14, 256, 32}, {rcvPackets, 15, 288, 32}},
	{{xmitData, 0, 64, 64}, {rcvData, 1, 128, 64}, {xmitPackets, 2, 192, 64}, {rcvPackets, 3, 256, 64},
		{unicastXmitPackets, 4, 320, 64}, {unicastRcvPackets, 5, 384, 64}},
}

// performance is the performance management agent (PMA) of the node whose port e has received the
// MAD.
func (e *endpoint) performance(m MAD) MAD {
	if m.Method() != MethodGet && m.Method() != MethodSet {
		return nil
	}
	if m.Version() != 1 {
		return m.answer(statusBadVersion)
	}
	r := m.answer(statusOK)
	b, set := r[perfData:], m.Method() == MethodSet
	switch attribute := m.attribute(); {
	case attribute == attrClassPortInfo && !set:
		clear(b)
		b[0], b[1], b[7] = 1, 1, responseTime
		binary.BigEndian.PutUint16(b[2:], capAllPortSelect|capExtendedWidth)
	case attribute == attrPortCounters:
		r.setStatus(e.node.count(0, b, set))
	case attribute == attrExtended:
		r.setStatus(e.node.count(1, b, set))
	default:
		r.setStatus(statusBadAttribute)
	}
	return r
}

// count answers a request for counterAttributes[which]. With set, it first sets the selected
// counters to the values in b.
func (n *node) count(which int, b []byte, set bool) status {
	of := n.counted(b[1])
	if of == nil {
		return statusBadValue
	}
	selected := binary.BigEndian.Uint16(b[2:])
	for _, f := range counterAttributes[which] {
		var sum uint64
		for _, e := range of {
			have, cleared := e.counts()[f.counter], &e.cleared[which][f.counter]
			if set && selected>>f.selected&1 != 0 {
				*cleared = have - get(b, f.at, f.bits)
			}
			sum += have - *cleared
		}
		put(b, f.at, f.bits, min(sum, math.MaxUint64>>(64-f.bits))) // counters stop at their largest value
	}
	return statusOK
}

// counted returns the ports that PortSelect names.
func (n *node) counted(selected byte) []*endpoint {
	if selected == allPorts {
		return n.ports[1:]
	}
	e := n.port(int(selected))
	if e == nil {
		return nil
	}
	return []*endpoint{e}
}

// get reads a big-endian bit field that lies within bytes or ends at a byte boundary.
func get(b []byte, at, bits uint) (v uint64) {
	for i := at; i < at+bits; i++ {
		v = v<<1 | uint64(b[i/8]>>(7-i%8)&1)
	}
	return v
}

// put writes such a field.
func put(b []byte, at, bits uint, v uint64) {
	for i := range bits {
		bit := at + bits - 1 - i
		b[bit/8] = b[bit/8]&^(1<<(7-bit%8)) | byte(v>>i&1)<<(7-bit%8)
	}
}
