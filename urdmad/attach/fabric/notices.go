package fabric

import (
	"encoding/binary"
	"math"
)

// Attributes and the method of notices.
const (
	attrInformInfo       = 0x03
	attrInformInfoRecord = 0xf3
	methodReport         = 0x06
)

// The traps that there are.
const (
	trapInService     = 64 // a port
	trapOutOfService  = 65
	trapGroupCreated  = 66
	trapGroupDeleted  = 67
	trapLinkState     = 128
	trapLinkIntegrity = 129
	trapBufferOverrun = 130
	trapDescription   = 144
	trapMKeyViolation = 256
)

// Types of generic notices.
const (
	generic          = 1 << 7
	urgent           = 1
	security         = 2
	subnetManagement = 3
	informational    = 4
)

const (
	noticeSize     = 80
	offTrap        = 4
	offIssuerLID   = 6
	offDetails     = 10
	offIssuerGID   = 64
	detailsGID     = offDetails + 6
	detailsLID     = offDetails + 2
	producerIsSM   = 4
	maxSubscribers = 1024
)

// notice is the attribute Notice, big-endian.
type notice [noticeSize]byte

func newNotice(from *endpoint, kind byte, producer byte, trap uint16) (n notice) {
	n[0], n[3] = generic|kind, producer
	binary.BigEndian.PutUint16(n[offTrap:], trap)
	binary.BigEndian.PutUint16(n[offIssuerLID:], from.info.lid())
	gid := from.gid()
	copy(n[offIssuerGID:], gid[:])
	return n
}

func (n *notice) trap() uint16 { return binary.BigEndian.Uint16(n[offTrap:]) }

// told is what was said of a port last.
type told struct{ up, inService bool }

// tell tells of links and ports that have come or gone since the last time.
func (s *Subnet) tell() {
	for _, n := range s.nodes {
		changed := false
		for _, e := range n.ports {
			if e == nil {
				continue
			}
			if up := e.joined(); up != e.told.up {
				e.told.up, changed = up, true
			}
			if is := n.known && e.own() == e && e.info.state() == stateActive; s.master() && is != e.told.inService {
				e.told.inService = is
				s.inService(e, is)
			}
		}
		if changed && n.kind == switchNode {
			s.linkChanged(n)
		}
	}
}

// The traps of nodes, which they send to the subnet manager.

// linkChanged is a switch's, one of whose links came up or went down.
func (s *Subnet) linkChanged(n *node) {
	t := newNotice(n.ports[0], urgent, byte(switchNode), trapLinkState)
	binary.BigEndian.PutUint16(t[offDetails:], n.ports[0].info.lid())
	s.send(n.ports[0], &t)
}

// renamed is that of a node whose NodeDescription has changed.
func (s *Subnet) renamed(e *endpoint) {
	const otherChanges, ofDescription = 1, 1
	t := newNotice(e.own(), informational, byte(e.node.kind), trapDescription)
	binary.BigEndian.PutUint16(t[detailsLID:], e.own().info.lid())
	t[detailsLID+3] = otherChanges
	binary.BigEndian.PutUint32(t[detailsLID+4:], e.own().info.capabilities())
	binary.BigEndian.PutUint16(t[detailsLID+8:], ofDescription)
	s.send(e.own(), &t)
}

// refused is that of a port to which somebody sent a SMP without its M_Key.
func (s *Subnet) refused(e *endpoint, m MAD) {
	t := newNotice(e.own(), security, byte(e.node.kind), trapMKeyViolation)
	d := t[detailsLID:]
	binary.BigEndian.PutUint16(d, e.own().info.lid())
	binary.BigEndian.PutUint16(d[2:], m.drSLID())
	d[4] = m.Method()
	copy(d[6:8], m[16:])  // AttributeID
	copy(d[8:12], m[20:]) // AttributeModifier
	binary.BigEndian.PutUint64(d[12:], m.mkey())
	p := &e.own().info
	if n := binary.BigEndian.Uint16(p[offViolations:]); n < math.MaxUint16 {
		binary.BigEndian.PutUint16(p[offViolations:], n+1)
	}
	s.send(e.own(), &t)
}

// send sends a trap of a port's to the subnet manager that it knows.
func (s *Subnet) send(from *endpoint, n *notice) {
	if s.master() {
		s.report(n)
		return
	}
	m := s.newMAD(ClassSubnet, 1, MethodTrap, attrNotice)
	copy(m[smpData:smpDataEnd], n[:])
	s.out = append(s.out, s.carry(from, Packet{SLID: from.info.lid(), DLID: from.info.smLID(), MAD: m})...)
}

func (s *Subnet) newMAD(class, version, method byte, attribute uint16) MAD {
	m := make(MAD, Size)
	m[0], m[1], m[2], m[3] = 1, class, version, method
	s.transaction++
	m.SetTransaction(s.transaction)
	binary.BigEndian.PutUint16(m[16:], attribute)
	return m
}

// Take returns what subnet management has sent by itself since the last call: traps, and
// reports for those who have asked for them.
func (s *Subnet) Take() (out []Delivery) {
	out, s.out = s.out, nil
	return out
}

// inService tells that a port can be reached, or no longer, as a subnet manager does.
func (s *Subnet) inService(e *endpoint, is bool) {
	trap := uint16(trapOutOfService)
	if is {
		trap = trapInService
	}
	s.reportGID(e.gid(), trap)
}

func (s *Subnet) reportGID(gid [16]byte, trap uint16) {
	n := newNotice(s.home, subnetManagement, producerIsSM, trap)
	copy(n[detailsGID:], gid[:])
	s.report(&n)
}

// subscription is what a port wants to be told of.
type subscription struct {
	who  *endpoint
	info informInfo
}

// informInfo is the attribute InformInfo, big-endian.
type informInfo [informInfoSize]byte

const (
	informInfoSize = 36

	offLIDBegin, offLIDEnd    = 16, 18
	offGeneric, offSubscribe  = 22, 23
	offType, offTrapNumber    = 24, 26
	offProducer               = 33
	every                     = 0xffff
	everyProducer             = 0xffffff
	offSubscriberQP, qpLength = 28, 3
)

// same reports whether two are for the same notices.
func (i *informInfo) same(j *informInfo) bool {
	a, b := *i, *j
	a[offSubscribe], b[offSubscribe] = 0, 0
	clear(a[offSubscriberQP : offSubscriberQP+qpLength+1]) // and RespTimeValue
	clear(b[offSubscriberQP : offSubscriberQP+qpLength+1])
	return a == b
}

// wants reports whether a notice is one that was asked for.
func (i *informInfo) wants(n *notice) bool {
	is := func(at int, all, have uint16) bool {
		want := binary.BigEndian.Uint16(i[at:])
		return want == all || want == have
	}
	producer := func(b []byte) uint32 { return uint32(b[0])<<16 | uint32(b[1])<<8 | uint32(b[2]) }
	lid := binary.BigEndian.Uint16(n[offIssuerLID:])
	begin, end := binary.BigEndian.Uint16(i[offLIDBegin:]), binary.BigEndian.Uint16(i[offLIDEnd:])
	gid := [16]byte(i[:16])
	switch {
	case i[offGeneric] != n[0]>>7,
		!is(offType, every, uint16(n[0]&^generic)),
		!is(offTrapNumber, every, n.trap()),
		producer(i[offProducer:]) != everyProducer && producer(i[offProducer:]) != producer(n[1:]):
		return false
	case gid != [16]byte{}:
		return gid == [16]byte(n[offIssuerGID:])
	}
	return begin == every || begin == 0 || begin <= lid && lid <= max(begin, end)
}

// report tells of a notice whoever has asked for such.
func (s *Subnet) report(n *notice) {
	for i := range s.subscriptions {
		if sub := &s.subscriptions[i]; sub.info.wants(n) {
			m := s.newMAD(ClassAdmin, adminVersion, methodReport, attrNotice)
			copy(m[adminData:], n[:])
			s.out = append(s.out, s.carry(s.home, Packet{SLID: s.home.info.lid(), DLID: sub.who.info.lid(), MAD: m})...)
		}
	}
}

// subscribe answers Set(InformInfo).
func (s *Subnet) subscribe(who *endpoint, m MAD) MAD {
	info := informInfo(m[adminData:])
	at := -1
	for i := range s.subscriptions {
		if s.subscriptions[i].who == who && s.subscriptions[i].info.same(&info) {
			at = i
		}
	}
	switch on := info[offSubscribe] == 1; {
	case info[offSubscribe] > 1, !on && at < 0:
		return m.answer(statusInvalidRequest)
	case on && at < 0 && len(s.subscriptions) == maxSubscribers:
		return m.answer(statusNoResources)
	case on && at < 0:
		s.subscriptions = append(s.subscriptions, subscription{who, info})
	case !on:
		s.subscriptions = append(s.subscriptions[:at], s.subscriptions[at+1:]...)
	}
	return m.answer(statusOK)
}

// informInfoRecords are the subscriptions, numbered by port.
func (s *Subnet) informInfoRecords(q *query) {
	count := map[*endpoint]uint16{}
	for i := range s.subscriptions {
		sub := &s.subscriptions[i]
		r := make([]byte, q.kind.size)
		gid := sub.who.gid()
		copy(r, gid[:])
		binary.BigEndian.PutUint16(r[16:], count[sub.who])
		copy(r[24:], sub.info[:])
		count[sub.who]++
		q.add(r)
	}
}
