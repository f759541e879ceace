package fabric

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"urdma/topology"
)

// change makes a request with a record.
func change(method byte, attribute uint16, mask uint64, record []byte) MAD {
	m := admin(method, attribute, mask)
	copy(m[adminData:], record)
	return m
}

// say sends a request to the subnet administration of three, and expects a status.
func say(t *testing.T, s *Subnet, device int, m MAD, want status) MAD {
	t.Helper()
	got := one(t, s, device, 1, m)
	if st := status(binary.BigEndian.Uint16(got[4:])); st != want {
		t.Fatalf("%x: status %#x, expected %#x", m[:24], st, want)
	}
	return got
}

// membership is a MCMemberRecord of one of three's ports.
func membership(s *Subnet, device int, mgid []byte, states byte) []byte {
	var r memberRecord
	copy(r[:], mgid)
	gid := s.devices[device].gid()
	copy(r[offPortGID:], gid[:])
	binary.BigEndian.PutUint32(r[offGroupQKey:], 0xb1b)
	r[offJoinState] = states
	return r[:]
}

const groupMask = createNeeds | 1<<memberMGID

// reports are the notices that come to a device by themselves.
func reports(t *testing.T, s *Subnet, device int) (traps []uint16) {
	t.Helper()
	for _, d := range s.Take() {
		m, at := d.MAD, adminData
		if m.Method() == MethodTrap {
			at = smpData
		}
		if d.Device != device || m.attribute() != attrNotice || m.Response() {
			t.Errorf("device %d is sent %x", d.Device, m[:24])
		}
		traps = append(traps, binary.BigEndian.Uint16(m[at+offTrap:]))
	}
	return traps
}

// TestGroups: who joins first makes a group, switches lead its packets to whoever is in it, and it is
// gone with its last full member.
func TestGroups(t *testing.T) {
	s, _ := three(t)
	mgid := unhex(t, "ff12 401b ffff 0000 0000 0000 0000 0001")
	join := func(device int, states byte) MAD {
		return change(MethodSet, attrMemberRecord, groupMask, membership(s, device, mgid, states))
	}
	say(t, s, 0, change(MethodSet, attrMemberRecord, joinNeeds|1<<memberMGID, membership(s, 0, mgid, fullMember)), statusTooFewComponents)
	say(t, s, 0, join(0, 0), statusInvalidRequest)
	stranger := join(0, fullMember)
	stranger[adminData+offPortGID+15] ^= 0x70
	say(t, s, 0, stranger, statusInvalidGID)
	noGroup := join(0, fullMember)
	noGroup[adminData] = 0x20
	say(t, s, 0, noGroup, statusInvalidRequest)

	first := say(t, s, 0, join(0, fullMember), statusOK)
	if r := first[adminData:]; binary.BigEndian.Uint16(r[offMLID:]) != firstMLID || r[offJoinState] != fullMember || r[offGroupMTU] != exactly|3 || r[offGroupRate] != exactly|rate40 {
		t.Errorf("record %x", r[:memberSize])
	}
	other := join(1, fullMember)
	binary.BigEndian.PutUint32(other[adminData+offGroupQKey:], 0xbad)
	say(t, s, 1, other, statusInvalidRequest)
	say(t, s, 1, join(1, 1<<2), statusOK) // sends alone
	if got := one(t, s, 0, 1, smp(MethodGet, attrMFT, 0)); !bytes.Equal(got[smpData:smpData+4], []byte{0, 1<<1 | 1<<2, 0, 0}) {
		t.Errorf("forwarding table %x", got[smpData:smpData+4])
	}
	for _, c := range []struct {
		mask    uint64
		key     uint64
		records int
	}{{0, 0, 1}, {0, 1, 2}, {1 << memberPortGID, 0, 1}, {1 << memberMGID, 0, 1}} {
		m := change(MethodGetTable, attrMemberRecord, c.mask, membership(s, 1, mgid, 0))
		binary.BigEndian.PutUint64(m[offSMKey:], c.key)
		if got := say(t, s, 2, m, statusOK); (len(got)-adminData)/56 != c.records {
			t.Errorf("%+v: %d bytes of records", c, len(got)-adminData)
		}
	}
	leave := func(device int, states byte) MAD {
		return change(MethodDelete, attrMemberRecord, joinNeeds|1<<memberMGID, membership(s, device, mgid, states))
	}
	say(t, s, 2, leave(2, fullMember), statusInvalidRequest)
	say(t, s, 0, leave(0, fullMember), statusOK)
	say(t, s, 0, leave(0, fullMember), statusInvalidRequest)
	if got := one(t, s, 0, 1, smp(MethodGet, attrMFT, 0)); len(s.groups) != 0 || got[smpData+1] != 0 {
		t.Errorf("%d groups, forwarding table %x", len(s.groups), got[smpData:smpData+4])
	}
	made := say(t, s, 0, change(MethodSet, attrMemberRecord, createNeeds, membership(s, 0, nil, fullMember)), statusOK)
	if made[adminData] != 0xff {
		t.Errorf("a group of our choice: %x", made[adminData:adminData+16])
	}
	s.Claim(1)
	s.Release(1)
	if len(s.groups) != 0 {
		t.Error("groups of before another subnet manager")
	}
}

// TestWrongKey: whoever guesses the SM_Key hears nothing.
func TestWrongKey(t *testing.T) {
	s, _ := three(t)
	if got := s.Send(0, Packet{DLID: 1, MAD: admin(MethodGetTable, attrPKeyRecord, 0).from(2)}); len(got) != 0 {
		t.Errorf("%d packets", len(got))
	}
	if got := one(t, s, 0, 1, admin(MethodGetTable, attrPKeyRecord, 0)); len(got) > Size {
		t.Errorf("%d bytes for no key", len(got))
	}
}

// TestGroupsAcrossSwitches: the ways of a group's packets are links of one tree, each from both ends.
func TestGroupsAcrossSwitches(t *testing.T) {
	topo, err := topology.Generate(topology.Size{Hosts: 6, Switches: 3})
	if err != nil {
		t.Fatal(err)
	}
	s, err := New("host", []Port{{Name: "urdma0", GUID: 1, LID: 0x100, Up: true}, {Name: "urdma1", GUID: 2, LID: 0x101, Up: true}}, topo)
	if err != nil {
		t.Fatal(err)
	}
	m := change(MethodSet, attrMemberRecord, createNeeds, membership(s, 1, nil, fullMember))
	say(t, s, 1, m, statusOK)
	mlids := s.groups[0].mlid()
	ports := 0
	for _, n := range s.nodes {
		for _, e := range n.ports {
			if e != nil && n.kind == switchNode && e.leads(mlids) {
				ports++
				if e.peer.node.kind == switchNode && !e.peer.leads(mlids) {
					t.Errorf("%s passes the group on to %s, which doesn't pass it back", n.desc, e.peer.node.desc)
				}
			}
		}
	}
	if ports != 3 { // that of the member, and both ends of a link
		t.Errorf("%d ports lead packets of the group", ports)
	}
}

func (e *endpoint) leads(mlid uint16) bool {
	group := int(mlid - firstMLID)
	block := e.node.mft[uint32(e.num/16)<<28|uint32(group/32)]
	return binary.BigEndian.Uint16(block[group%32*2:])>>(e.num%16)&1 != 0
}

// TestServices: records are kept for their lease, and changed by who has their key.
func TestServices(t *testing.T) {
	s, _ := three(t)
	s.At(1000)
	record := func(id, key byte, lease uint32) []byte {
		var r serviceRecord
		r[7], r[offServiceKey] = id, key
		copy(r[offServiceName:], "name")
		binary.BigEndian.PutUint32(r[offServiceLease:], lease)
		return r[:]
	}
	set := func(id, key byte, lease uint32, want status) {
		t.Helper()
		say(t, s, 0, change(MethodSet, attrServiceRecord, 3, record(id, key, lease)), want)
	}
	is := func(want ...byte) {
		t.Helper()
		got := say(t, s, 2, change(MethodGetTable, attrServiceRecord, 0, nil), statusOK)
		var ids []byte
		for r := got[adminData:]; len(r) >= serviceSize; r = r[serviceSize:] {
			if ids = append(ids, r[7]); r[offServiceKey] != 0 {
				t.Error("a service's key is told")
			}
		}
		if !slices.Equal(ids, want) {
			t.Errorf("services %v, expected %v", ids, want)
		}
	}
	set(1, 0, forEver, statusOK)
	set(2, 7, 60, statusOK)
	set(2, 8, 60, statusInvalidRequest)
	is(1, 2)
	got := say(t, s, 1, change(MethodGet, attrServiceRecord, 1, record(2, 0, 0)), statusOK)
	if left := binary.BigEndian.Uint32(got[adminData+offServiceLease:]); left != 60 {
		t.Errorf("a lease of %d s", left)
	}
	s.At(1060)
	is(1)
	remove := change(MethodDelete, attrServiceRecord, 3, record(1, 0, 0))
	say(t, s, 0, remove, statusOK)
	say(t, s, 0, remove, statusNoRecords)
	is()
}

// TestReports: ports that come and go, and groups, are told to whoever has subscribed, and to nobody after that.
func TestReports(t *testing.T) {
	s, ports := three(t)
	var info informInfo
	for _, at := range []int{offLIDBegin, offType, offTrapNumber, offProducer, offProducer + 1} {
		binary.BigEndian.PutUint16(info[at:], every)
	}
	info[offGeneric], info[offSubscribe] = 1, 1
	say(t, s, 2, change(MethodSet, attrInformInfo, 0, info[:]), statusOK)
	say(t, s, 2, change(MethodSet, attrInformInfo, 0, info[:]), statusOK) // once more changes nothing
	ports[1].Up = false
	s.Update(ports)
	if got := reports(t, s, 2); !slices.Equal(got, []uint16{trapLinkState, trapOutOfService}) && !slices.Equal(got, []uint16{trapOutOfService, trapLinkState}) {
		t.Errorf("link down: traps %v", got)
	}
	ports[1].Up = true
	s.Update(ports)
	if got := reports(t, s, 2); len(got) != 2 || !slices.Contains(got, trapInService) {
		t.Errorf("link up: traps %v", got)
	}
	say(t, s, 0, change(MethodSet, attrMemberRecord, createNeeds, membership(s, 0, nil, fullMember)), statusOK)
	if got := reports(t, s, 2); !slices.Equal(got, []uint16{trapGroupCreated}) {
		t.Errorf("a new group: traps %v", got)
	}
	table := say(t, s, 0, change(MethodGetTable, attrInformInfoRecord, 0, nil), statusOK)
	if gid := s.devices[2].gid(); len(table)-adminData != 64 || !bytes.Equal(table[adminData:adminData+16], gid[:]) {
		t.Errorf("subscriptions: %x", table[adminData:])
	}
	for name, change := range map[string]func(*informInfo){
		"another trap":     func(i *informInfo) { binary.BigEndian.PutUint16(i[offTrapNumber:], 17) },
		"another type":     func(i *informInfo) { binary.BigEndian.PutUint16(i[offType:], 0) },
		"another producer": func(i *informInfo) { i[offProducer+2] = 0 },
		"vendors' notices": func(i *informInfo) { i[offGeneric] = 0 },
		"another LID":      func(i *informInfo) { binary.BigEndian.PutUint32(i[offLIDBegin:], 0x00700080) },
		"another issuer":   func(i *informInfo) { i[0] = 1 },
	} {
		i := info
		n := newNotice(s.home, subnetManagement, producerIsSM, trapInService)
		if !i.wants(&n) {
			t.Fatal("not wanted by who wants everything")
		}
		if change(&i); i.wants(&n) {
			t.Errorf("%s: wanted", name)
		}
	}
	info[offSubscribe] = 0
	say(t, s, 2, change(MethodSet, attrInformInfo, 0, info[:]), statusOK)
	say(t, s, 2, change(MethodSet, attrInformInfo, 0, info[:]), statusInvalidRequest)
	ports[1].Up = false
	s.Update(ports)
	if got := reports(t, s, 2); got != nil {
		t.Errorf("after the end: traps %v", got)
	}
}

// TestTraps: another subnet manager is sent what nodes notice, which is then its to report.
func TestTraps(t *testing.T) {
	s, ports := three(t)
	s.Claim(2)
	lid := s.devices[2].info.lid()
	for e := range s.endpoints {
		e.info.setSMLID(lid)
	}
	ports[1].Up = false
	s.Update(ports)
	if got := reports(t, s, 2); !slices.Equal(got, []uint16{trapLinkState}) {
		t.Errorf("link down: traps %v", got)
	}
	s.devices[0].info[7] = 9 // an M_Key
	s.devices[0].info[offProtectLMC] |= 2 << 6
	m := smp(MethodGet, attrPortInfo, 1)
	if got := s.Send(2, Packet{DLID: 0x10, MAD: m}); got != nil {
		t.Errorf("without the M_Key: %v", got)
	}
	if got := reports(t, s, 2); !slices.Equal(got, []uint16{trapMKeyViolation}) || s.devices[0].info[offViolations+1] != 1 {
		t.Errorf("without the M_Key: traps %v", got)
	}
	s.UpdatePeers(nil)
	s.renamed(s.devices[0])
	if got := reports(t, s, 2); !slices.Equal(got, []uint16{trapDescription}) {
		t.Errorf("a new name: traps %v", got)
	}
	s.Release(2)
	if s.Shown(0).Reregistered != 1 {
		t.Error("nobody is told to register with our subnet administration")
	}
}

// TestMultiPath: a path from each source to each destination, of those that are as wanted; a wrong question has
// its status.
func TestMultiPath(t *testing.T) {
	s, _ := three(t)
	gid := func(i int) []byte { g := s.devices[i].gid(); return g[:] }
	ask := func(mask uint64, mtu byte, sources, destinations byte, gids ...[]byte) MAD {
		m := admin(methodGetMulti, attrMultiPath, mask)
		b := m[adminData:]
		b[10], b[15], b[16] = mtu, sources, destinations
		for i, g := range gids {
			copy(b[24+16*i:], g)
		}
		return one(t, s, 0, s.home.info.lid(), m)
	}
	const counts, mtuToo = 1<<19 | 1<<20, 1<<19 | 1<<20 | 1<<10 | 1<<11
	for _, c := range []struct {
		answer MAD
		pairs  [][2]uint16 // DLID, SLID
	}{
		{ask(counts, 0, 1, 2, gid(0), gid(1), gid(2)), [][2]uint16{{0x20, 0x10}, {0x30, 0x10}}},
		{ask(counts, 0, 2, 1, gid(1), gid(2), gid(2)), [][2]uint16{{0x30, 0x20}, {0x30, 0x30}}},
		{ask(mtuToo, exactly|mtu4096, 2, 1, gid(0), gid(1), gid(2)), [][2]uint16{{0x30, 0x20}}}, // the first port's is smaller
		{ask(mtuToo, exactly|1, 1, 1, gid(1), gid(2)), nil},
	} {
		var got [][2]uint16
		for at := adminData; at+64 <= c.answer.TableLength(); at += 64 {
			got = append(got, [2]uint16{binary.BigEndian.Uint16(c.answer[at+40:]), binary.BigEndian.Uint16(c.answer[at+42:])})
		}
		if c.answer.Method() != methodGetMulti|MethodResponse || !slices.Equal(got, c.pairs) {
			t.Errorf("method %#x, status %x, pairs %x, expected %x", c.answer.Method(), c.answer[4:6], got, c.pairs)
		}
	}
	stranger := make([]byte, 16)
	for want, m := range map[status]MAD{
		statusTooFewComponents: ask(1<<19, 0, 1, 1, gid(0), gid(1)), statusInvalidGID: ask(counts, 0, 1, 1, gid(0), stranger),
		statusInvalidRequest: ask(counts, 0, 200, 100),
	} {
		if got := status(binary.BigEndian.Uint16(m[4:])); got != want {
			t.Errorf("status %#x, expected %#x", got, want)
		}
	}
}
