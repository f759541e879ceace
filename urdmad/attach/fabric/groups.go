package fabric

import (
	"encoding/binary"
	"slices"
)

// memberRecord is the attribute MCMemberRecord, big-endian.
type memberRecord [memberSize]byte

const (
	attrMemberRecord = 0x38
	memberSize       = 52

	offPortGID   = 16
	offGroupQKey = 32
	offMLID      = 36
	offGroupMTU  = 38
	offGroupRate = 42
	offGroupLife = 43
	offJoinState = 48 // beside Scope

	firstMLID = 0xc000
	noLID     = 0
)

// Components of a MCMemberRecord, and those that whoever joins and whoever makes a group has to
// name.
const (
	memberMGID, memberPortGID, memberQKey          = 0, 1, 2
	memberTClass, memberPKey, memberSL, memberFlow = 6, 7, 12, 13
	memberMTU, memberRate, memberLife              = 5, 9, 11
	memberJoinState, memberProxy                   = 16, 17

	joinNeeds   = 1<<memberPortGID | 1<<memberJoinState
	createNeeds = joinNeeds | 1<<memberQKey | 1<<memberTClass | 1<<memberPKey | 1<<memberSL | 1<<memberFlow
)

// Bits of JoinState.
const (
	fullMember   = 1 << 0
	memberStates = 0xf
)

func memberFields() []component {
	list := fields(128, 128, 32, 16, 2, 6, 8, 16, 2, 6, 2, 6, 4, 20, 8, 4, 4, 1)
	for _, i := range []int{memberMTU, memberRate, memberLife} {
		list[i].selector, list[i-1].bits = true, 0
	}
	return list
}

// group is a multicast group.
type group struct {
	record  memberRecord // without a port and its states
	members []member     // in the order in which they came
}

// member is a port in a group.
type member struct {
	*endpoint
	states byte
}

func (g *group) mlid() uint16 { return binary.BigEndian.Uint16(g.record[offMLID:]) }

func (g *group) mgid() [16]byte { return [16]byte(g.record[:]) }

// of is the record of a member.
func (g *group) of(m member) memberRecord {
	r := g.record
	gid := m.gid()
	copy(r[offPortGID:], gid[:])
	r[offJoinState] |= m.states
	return r
}

// membership answers Set, by which a port joins a group, and Delete, by which it leaves.
func (s *Subnet) membership(m MAD) MAD {
	r := memberRecord(m[adminData:])
	who := s.byGID([16]byte(r[offPortGID:]))
	switch {
	case m.mask()&joinNeeds != joinNeeds:
		return m.answer(statusTooFewComponents)
	case r[offJoinState]&memberStates == 0:
		return m.answer(statusInvalidRequest)
	case who == nil:
		return m.answer(statusInvalidGID)
	}
	at := slices.IndexFunc(s.groups, func(g *group) bool { return g.mgid() == [16]byte(r[:]) })
	if m.Method() == MethodDelete {
		if at < 0 {
			return m.answer(statusInvalidRequest)
		}
		return s.leave(at, who, m)
	}
	if at >= 0 {
		return s.join(s.groups[at], who, m)
	}
	g, st := s.newGroup(&r, m.mask(), who)
	if g == nil {
		return m.answer(st)
	}
	s.groups = append(s.groups, g)
	s.reportGID(g.mgid(), trapGroupCreated)
	return s.join(g, who, m)
}

// newGroup makes a group as its first member wants it, with what it leaves open.
func (s *Subnet) newGroup(r *memberRecord, mask uint64, who *endpoint) (*group, status) {
	switch {
	case r[offJoinState]&fullMember == 0:
		return nil, statusInvalidRequest
	case mask&createNeeds != createNeeds:
		return nil, statusTooFewComponents
	case !validMGID([16]byte(r[:])):
		return nil, statusInvalidRequest
	}
	mlid := s.freeMLID()
	if mlid == noLID {
		return nil, statusNoResources
	}
	g := &group{record: *r}
	if r[0] == 0 { // the choice is ours
		scope := byte(linkLocal)
		if mask>>memberScope&1 != 0 {
			scope = r[offJoinState] >> 4
		}
		copy(g.record[:], []byte{0xff, transient | scope, ofAdmin >> 8, ofAdmin & 0xff, 0xfe, 0x80, 14: byte(mlid >> 8), 15: byte(mlid)})
	}
	clear(g.record[offPortGID:offGroupQKey])
	binary.BigEndian.PutUint16(g.record[offMLID:], mlid)
	for _, v := range []struct {
		component uint
		at        int
		values    []byte
	}{{memberMTU, offGroupMTU, mtus[:who.info.mtu()]}, {memberRate, offGroupRate, rates}, {memberLife, offGroupLife, lifeTimes}} {
		ask := byte(largest)
		if mask>>v.component&1 != 0 {
			if ask = r[v.at]; mask>>(v.component-1)&1 == 0 {
				ask = exactly | ask&^selectors
			}
		}
		value, ok := choose(ask, v.values)
		if !ok {
			return nil, statusInvalidRequest
		}
		g.record[v.at] = exactly | value
	}
	g.record[offJoinState] &^= memberStates
	clear(g.record[offJoinState+1:])
	return g, statusOK
}

// Of a MGID: the flags and the scope, and the signatures of IP over InfiniBand and of what the
// subnet administration chooses.
const (
	transient   = 1 << 4
	reservedMC  = 0xe0
	linkLocal   = 2
	ofIPv4      = 0x401b
	ofIPv6      = 0x601b
	ofAdmin     = 0xa01b
	memberScope = 15
)

// validMGID reports whether a group can have a MGID; 0 leaves the choice to us.
func validMGID(mgid [16]byte) bool {
	signature := binary.BigEndian.Uint16(mgid[2:])
	switch {
	case mgid == [16]byte{}:
		return true
	case mgid[0] != 0xff:
		return false
	case signature == ofIPv4 || signature == ofIPv6:
		return true
	}
	return mgid[1]&reservedMC == 0 && (signature != ofAdmin || mgid[1]&0xf != linkLocal)
}

// selectors are the bits of a component's selector beside it: more than, less than, exactly,
// the largest there is.
const (
	selectors = 3 << 6
	lessThan  = 1 << 6
	largest   = 3 << 6
)

// What a port's packets can have, the smallest first.
var (
	mtus      = []byte{1, 2, 3, 4, mtu4096}
	rates     = []byte{2, 5, 3, 6, 4, rate40} // of Gb/s: 2.5, 5, 10, 20, 30, 40
	lifeTimes = func() (all []byte) {
		for i := range byte(64) {
			all = append(all, i)
		}
		return all
	}()
)

// choose finds the largest value that a component with its selector asks for. Of life times, of which
// none is largest, a path's is.
func choose(ask byte, of []byte) (value byte, ok bool) {
	want := slices.Index(of, ask&^selectors)
	at := len(of) - 1
	switch ask & selectors {
	case largest:
		if len(of) == len(lifeTimes) {
			at = pathLifeTime
		}
		return of[at], true
	case lessThan:
		if at = want - 1; want < 0 { // more than there is
			at = len(of) - 1
		}
	case exactly:
		at = want
	default:
		if at <= want {
			at = -1
		}
	}
	if at < 0 {
		return 0, false
	}
	return of[at], true
}

func (s *Subnet) freeMLID() uint16 {
	for lid := uint16(firstMLID); lid < firstMLID+multicastLIDs; lid++ {
		if !slices.ContainsFunc(s.groups, func(g *group) bool { return g.mlid() == lid }) {
			return lid
		}
	}
	return noLID
}

// join adds states to a port's membership, where the group is as the port wants it.
func (s *Subnet) join(g *group, who *endpoint, m MAD) MAD {
	states := m[adminData+offJoinState] & memberStates
	if q := (&query{kind: records[attrMemberRecord], mask: m.mask() &^ (joinNeeds | 1<<memberMGID | 1<<memberProxy), want: m[adminData:Size]}); !q.takes(g.record[:]) {
		return m.answer(statusInvalidRequest)
	}
	at := slices.IndexFunc(g.members, func(old member) bool { return old.endpoint == who })
	if at < 0 {
		at, g.members = len(g.members), append(g.members, member{endpoint: who})
	}
	g.members[at].states |= states
	s.routeGroups()
	r := g.of(g.members[at])
	return m.answerRecord(r[:])
}

// leave takes states from a port's membership. A group is there as long as it has a full member.
func (s *Subnet) leave(i int, who *endpoint, m MAD) MAD {
	g, states := s.groups[i], m[adminData+offJoinState]&memberStates
	at := slices.IndexFunc(g.members, func(old member) bool { return old.endpoint == who })
	if at < 0 || g.members[at].states&states != states {
		return m.answer(statusInvalidRequest)
	}
	g.members[at].states &^= states
	r := g.of(g.members[at])
	if g.members[at].states == 0 {
		g.members = slices.Delete(g.members, at, at+1)
	}
	if !slices.ContainsFunc(g.members, func(of member) bool { return of.states&fullMember != 0 }) {
		s.groups = slices.Delete(s.groups, i, i+1)
		s.reportGID(g.mgid(), trapGroupDeleted)
	}
	s.routeGroups()
	return m.answerRecord(r[:])
}

// memberRecords are the groups, or, for whoever has a key or asks for ports, their members.
func (s *Subnet) memberRecords(q *query) {
	for _, g := range s.groups {
		if !q.trusted && !q.wants(memberPortGID) {
			q.add(g.record[:])
			continue
		}
		for _, m := range g.members {
			r := g.of(m)
			q.add(r[:])
		}
	}
}

// byGID is the port that has a GID, nil: none that is in the subnet.
func (s *Subnet) byGID(gid [16]byte) *endpoint {
	for e := range s.ends {
		if e.gid() == gid {
			return e
		}
	}
	return nil
}

// routeGroups writes the multicast forwarding tables: each group's packets go along the
// shortest ways from its members to our subnet manager's switch.
func (s *Subnet) routeGroups() {
	top := uint16(0)
	up := s.tree()
	for _, n := range s.nodes {
		if n.kind == switchNode {
			clear(n.mft)
		}
	}
	for _, g := range s.groups {
		top = max(top, g.mlid())
		for _, m := range g.members {
			for out := m.endpoint; out != nil && out.joined(); out = up[out.peer.node] {
				out.passes(g.mlid())
				out.peer.passes(g.mlid())
			}
		}
	}
	for _, n := range s.nodes {
		if n.kind == switchNode {
			binary.BigEndian.PutUint16(n.info[offMulticastTop:], top)
		}
	}
}

// tree is by which port each switch is nearest to our subnet manager's.
func (s *Subnet) tree() map[*node]*endpoint {
	up := map[*node]*endpoint{s.home.node: nil}
	for found := []*node{s.home.node}; len(found) > 0; found = found[1:] {
		for _, out := range found[0].ports[1:] {
			if !out.joined() || out.peer.node.kind != switchNode {
				continue
			}
			if _, seen := up[out.peer.node]; !seen {
				up[out.peer.node] = out.peer
				found = append(found, out.peer.node)
			}
		}
	}
	return up
}

// passes has a switch send a group's packets out of a port: a bit among 16 ports.
func (e *endpoint) passes(mlid uint16) {
	if e.node.kind != switchNode {
		return
	}
	const perBlock = (smpDataEnd - smpData) / 2
	group := int(mlid - firstMLID)
	at := uint32(e.num/16)<<28 | uint32(group/perBlock)
	block := e.node.mft[at]
	entry := block[group%perBlock*2:]
	binary.BigEndian.PutUint16(entry, binary.BigEndian.Uint16(entry)|1<<(e.num%16))
	e.node.mft[at] = block
}
