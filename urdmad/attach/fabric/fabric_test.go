package fabric

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"urdma/topology"
)

// three makes a subnet of three ports.
func three(t testing.TB) (*Subnet, []Port) {
	t.Helper()
	ports := []Port{
		{Name: "urdma0", GUID: 0x006c0afffe090001, LID: 0x10, MTU: 1500, Up: true,
			Counters: Counters{RxPackets: 3, TxPackets: 5, RxBytes: 400, TxBytes: 800, LinkDowns: 1}},
		{Name: "urdma1", GUID: 0x006c0afffe090002, LID: 0x20, MTU: 9000, Up: true},
		{Name: "urdma2", GUID: 0x006c0afffe090003, LID: 0x30, MTU: 9000, Up: true},
	}
	s, err := New("host", ports, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s, ports
}

func unhex(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(text), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// smp makes a LID-routed SMP.
func smp(method byte, attribute uint16, modifier uint32) MAD {
	m := make(MAD, Size)
	m[0], m[1], m[2], m[3] = 1, ClassSubnet, 1, method
	binary.BigEndian.PutUint16(m[16:], attribute)
	binary.BigEndian.PutUint32(m[20:], modifier)
	return m
}

// along makes a directed-route SMP from an SMP.
func (m MAD) along(path ...byte) MAD {
	m[1], m[offHops] = ClassDirected, byte(len(path))
	copy(m[initialPath+1:], path)
	binary.BigEndian.PutUint16(m[offDrSLID:], permissiveLID)
	binary.BigEndian.PutUint16(m[offDrDLID:], permissiveLID)
	return m
}

// one sends a MAD and returns the answer to its sender.
func one(t testing.TB, s *Subnet, device int, dlid uint16, m MAD) MAD {
	t.Helper()
	got := s.Send(device, Packet{DLID: dlid, MAD: m})
	if len(got) != 1 || got[0].Device != device || !got[0].MAD.Response() {
		t.Fatalf("%d packets for %x, expected an answer", len(got), m[:24])
	}
	return got[0].MAD
}

// The bytes of IBA tables 131, 152, 155, 157 and 166.
func TestAttributes(t *testing.T) {
	const hops2 = "01 81 01 81 8000 00 02 1122334455667788"
	for _, c := range []struct {
		name string
		dlid uint16
		m    MAD
		head string // first 16 bytes
		want string // from the attribute on
	}{
		{"NodeInfo of the own port", permissiveLID, smp(MethodGet, attrNodeInfo, 0).along(),
			"01 81 01 81 8000 00 00 1122334455667788",
			"01 01 01 01 006c0afffe090001 006c0afffe090001 006c0afffe090001 0001 0001 00000001 01 757264 00"},
		{"NodeInfo of the switch", permissiveLID, smp(MethodGet, attrNodeInfo, 0).along(1),
			"01 81 01 81 8000 00 01 1122334455667788",
			"01 01 02 03 016c0afffe090001 016c0afffe090001 016c0afffe090001 0001 0001 00000001 01 757264 00"},
		{"NodeInfo of another", permissiveLID, smp(MethodGet, attrNodeInfo, 0).along(1, 2), hops2,
			"01 01 01 01 006c0afffe090002 006c0afffe090002 006c0afffe090002 0001 0001 00000001 01 757264 00"},
		{"NodeDescription", 0x20, smp(MethodGet, attrNodeDescription, 0), "01 01 01 81 0000 0000 1122334455667788",
			hex.EncodeToString([]byte("host urdma1\x00"))},
		{"SwitchInfo", 1, smp(MethodGet, attrSwitchInfo, 0), "01 01 01 81 0000 0000 1122334455667788",
			"c000 0000 0400 0030 ff ff ff 90 0000 0000 00 00 0000"},
		{"SwitchInfo of an adapter", 0x20, smp(MethodGet, attrSwitchInfo, 0), "01 01 01 81 000c 0000 1122334455667788", "00"},
		{"PortInfo", 0x10, smp(MethodGet, attrPortInfo, 1), "01 01 01 81 0000 0000 1122334455667788",
			"0000000000000000 fe80000000000000 0010 0001 02010848 0000 0000 01 03 03 02 74 52 00 47 30 10 00 00 00 03 00 10 0000 0000 0000 01 12 10 00 0000"},
		{"PortInfo of a switch's port", 1, smp(MethodGet, attrPortInfo, 2), "01 01 01 81 0000 0000 1122334455667788",
			"0000000000000000 fe80000000000000 0000 0000 00000000 0000 0000 01 03 03 02 74 52 00 47 50 10 00 00 00 05 00 10 0000 0000 0000 00 12 10 00 0000"},
		{"PortInfo of a port there isn't", 1, smp(MethodGet, attrPortInfo, 4), "01 01 01 81 001c 0000 1122334455667788",
			"00"},
		{"GUIDInfo", 0x20, smp(MethodGet, attrGUIDInfo, 0), "01 01 01 81 0000 0000 1122334455667788",
			"006c0afffe090002 0000000000000000"},
		{"P_KeyTable", 0x20, smp(MethodGet, attrPKeyTable, 0), "01 01 01 81 0000 0000 1122334455667788", "ffff 0000"},
		{"LinearForwardingTable", 1, smp(MethodGet, attrLFT, 0), "01 01 01 81 0000 0000 1122334455667788",
			"ff 00 ff ff ffffffff ffffffffffffffff 01 ffffff ffffffff ffffffffffffffff 02 ffffff"},
		{"SMInfo", 1, smp(MethodGet, attrSMInfo, 0), "01 01 01 81 0000 0000 1122334455667788",
			"016c0afffe090001 0000000000000000 00000001 03 000000"},
		{"what nobody knows", 0x20, smp(MethodGet, 0xff90, 0), "01 01 01 81 000c 0000 1122334455667788", "00"},
		{"a version nobody knows", 0x20, MAD(append([]byte{1, 1, 9}, smp(MethodGet, attrNodeInfo, 0)[3:]...)),
			"01 01 09 81 0004 0000 1122334455667788", "00"},
	} {
		s, _ := three(t)
		c.m.SetTransaction(0x1122334455667788)
		got := one(t, s, 0, c.dlid, c.m)
		if head := unhex(t, c.head); !bytes.Equal(got[:16], head) {
			t.Errorf("%s: begins with\n%x, expected\n%x", c.name, got[:16], head)
		}
		if want := unhex(t, c.want); !bytes.Equal(got[smpData:smpData+len(want)], want) {
			t.Errorf("%s:\n%x, expected\n%x", c.name, got[smpData:smpData+len(want)], want)
		}
	}
}

// The return path has the ports at which the MAD arrived; a MAD whose path leads nowhere is lost.
func TestDirectedRoute(t *testing.T) {
	s, ports := three(t)
	got := one(t, s, 0, permissiveLID, smp(MethodGet, attrNodeInfo, 0).along(1, 3))
	if want := []byte{0, 1, 1, 0}; !bytes.Equal(got[returnPath:returnPath+4], want) {
		t.Errorf("return path %v, expected %v", got[returnPath:returnPath+4], want)
	}
	for _, path := range [][]byte{{2}, {0}, {1, 4}, {1, 0}, {1, 1, 1, 1, 1}, {1, 2, 1}, bytes.Repeat([]byte{1}, 200)} {
		m := smp(MethodGet, attrNodeInfo, 0)
		if len(path) > maxHops {
			m.along(path[:maxHops]...)
			m[offHops] = byte(len(path))
		} else {
			m.along(path...)
		}
		if got := s.Send(0, Packet{DLID: permissiveLID, MAD: m}); len(got) != 0 {
			t.Errorf("path %v leads to %v", path, got)
		}
	}
	ports[2].Up = false
	s.Update(ports)
	if got := s.Send(0, Packet{DLID: permissiveLID, MAD: smp(MethodGet, attrNodeInfo, 0).along(1, 3)}); len(got) != 0 {
		t.Errorf("a link that is down leads to %v", got)
	}
}

// devicesOf makes a subnet with a device of three ports and one of one.
func devicesOf(t testing.TB) (*Subnet, []Port) {
	t.Helper()
	ports := []Port{
		{Name: "hca0", Node: 1, GUID: 1, LID: 0x20, MTU: 1500, Up: true, Counters: Counters{RxPackets: 1}},
		{Name: "hca0", Node: 1, GUID: 2, LID: 0x21, MTU: 9000, Up: true, Counters: Counters{RxPackets: 2}},
		{Name: "hca0", Node: 1, GUID: 3, LID: 0x22, MTU: 9000},
		{Name: "urdma3", Node: 4, GUID: 4, LID: 0x30, MTU: 9000, Up: true},
	}
	s, err := New("host", ports, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s, ports
}

// TestDeviceOfSeveralPorts: a device is one node. Each of its ports has a LID, a GUID, a link and counters, and a
// route to the others through the switch.
func TestDeviceOfSeveralPorts(t *testing.T) {
	s, _ := devicesOf(t)
	if names := s.Nodes(); len(names) != 3 || names[1] != "host hca0" || names[2] != "host urdma3" {
		t.Errorf("nodes: %q", names)
	}
	for i, lid := range []uint16{0x20, 0x21} {
		got := one(t, s, 3, lid, smp(MethodGet, attrNodeInfo, 0))[smpData:]
		if got[3] != 3 || got[19] != 1 || int(got[27]) != i+1 || int(got[36]) != i+1 {
			t.Errorf("LID %#x: NodeInfo %x", lid, got[:nodeInfoSize])
		}
		if got := one(t, s, 1-i, lid, smp(MethodGet, attrGUIDInfo, 0))[smpData:]; int(got[7]) != i+1 {
			t.Errorf("LID %#x: GUID %x", lid, got[:8])
		}
		got = one(t, s, 3, permissiveLID, smp(MethodGet, attrPortInfo, 0).along(1, byte(i+1)))[smpData:]
		if p := (*portInfo)(got); p.lid() != lid || p.state() != stateActive || int(p[offLocalPort]) != i+1 {
			t.Errorf("port %d by the switch: PortInfo %x", i+1, got[:smpDataEnd-smpData])
		}
	}
	for num, state := range map[uint32]byte{1: stateActive, 2: stateActive, 3: stateDown} {
		if got := one(t, s, 3, 0x20, smp(MethodGet, attrPortInfo, num))[smpData:]; got[offState]&0xf != state {
			t.Errorf("port %d: state %d", num, got[offState]&0xf)
		}
	}
	for port, want := range map[byte]uint32{1: 1, 2: 2, allPorts: 3} {
		m := perf(MethodGet, attrPortCounters, port, 0)
		if got := binary.BigEndian.Uint32(one(t, s, 3, 0x21, m)[perfData+36:]); got != want {
			t.Errorf("port %d: %d packets received, expected %d", port, got, want)
		}
	}
	if s.Shown(2).State != stateDown || s.Shown(1).LID != 0x21 {
		t.Errorf("%+v, %+v", s.Shown(1), s.Shown(2))
	}
}

// TestDeviceInTopology: a device takes the place of a channel adapter with as many ports, each linked to a switch.
func TestDeviceInTopology(t *testing.T) {
	_, ports := devicesOf(t)
	const switches = "Switch 4 \"a\"\nSwitch 4 \"b\"\n"
	for text, want := range map[string]string{
		switches + "Ca 3 \"hca0\"\n[1] \"a\"[1]\n[2] \"b\"[1]\n[3] \"b\"[2]": "",
		switches: "",
		switches + "Ca 2 \"hca0\"\n[1] \"a\"[1]\n[2] \"b\"[1]": "with 2 ports, expected 3",
		switches + "Ca 3 \"hca0\"\n[1] \"a\"[1]\n[2] \"b\"[1]": "not linked to a switch by port 3",
		"Switch 2 \"a\"": "no switch has a free port for hca0",
		switches + "caguid=0x3\nCa 1 \"x\"\n[1] \"a\"[1]": "found GUID 0x3 of hca0",
	} {
		topo, err := topology.Parse("file", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		s, err := New("host", ports, topo)
		switch {
		case want == "" && err != nil, want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: %v, expected %q", text, err, want)
		case want == "" && (s.devices[1].node != s.devices[0].node || s.devices[1].peer.node == s.devices[0].peer.node):
			t.Errorf("%q: ports 1 and 2 are not one node's at two switches", text)
		}
	}
}

// Two ports with one LID in the configuration get two; the switch gets a free one.
func TestLIDs(t *testing.T) {
	s, err := New("host", []Port{{GUID: 1, LID: 0x10, Up: true}, {GUID: 2, LID: 0x10, Up: true}, {GUID: 3, Up: true},
		{GUID: 4, LID: 0xc000, Up: true}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []uint16{0x10, 1, 2, 3} {
		if got := s.Shown(i); got.LID != want || got.SMLID != 4 || got.State != stateActive {
			t.Errorf("port %d: %+v, expected LID %#x and SM LID 4", i, got, want)
		}
	}
}

// If a link goes down, both of its ends are down; when it comes up again they are active.
func TestLinks(t *testing.T) {
	s, ports := three(t)
	ports[1].Up = false
	s.Update(ports)
	if got := s.Shown(1); got.State != stateDown || got.Phys != physicalPolling {
		t.Errorf("%+v after the link went down", got)
	}
	if got := one(t, s, 0, 1, smp(MethodGet, attrPortInfo, 2)); got[smpData+offState]&0xf != stateDown {
		t.Errorf("the switch's end: %x", got[smpData+offState])
	}
	if got := s.Send(0, Packet{DLID: 0x20, MAD: smp(MethodGet, attrNodeInfo, 0)}); len(got) != 0 {
		t.Errorf("a port whose link is down answers: %v", got)
	}
	ports[1].Up = true
	s.Update(ports)
	if got := s.Shown(1); got.State != stateActive || got.Phys != physicalUp {
		t.Errorf("%+v after the link came up", got)
	}
}

// setPort changes Get's answer and sends it as Set(PortInfo).
func setPort(t *testing.T, s *Subnet, dlid uint16, num uint32, change func(p *portInfo)) status {
	t.Helper()
	m := smp(MethodSet, attrPortInfo, num)
	p := portInfo(one(t, s, 0, dlid, smp(MethodGet, attrPortInfo, num))[smpData:smpDataEnd])
	p.setState(0, 0) // no change
	change(&p)
	copy(m[smpData:], p[:])
	return status(binary.BigEndian.Uint16(one(t, s, 0, dlid, m)[4:]))
}

// A program that disables a port takes its link down until the port is enabled.
func TestDisable(t *testing.T) {
	s, ports := three(t)
	if st := setPort(t, s, 1, 2, func(p *portInfo) { p.setState(stateDown, physicalDisabled) }); st != statusOK {
		t.Fatalf("status %#x", st)
	}
	s.Update(ports) // the cable itself is fine
	if got := s.Shown(1); got.State != stateDown || got.Phys != physicalPolling || !got.Disabled {
		t.Errorf("%+v at the other end of a disabled port", got)
	}
	if got := one(t, s, 0, 1, smp(MethodGet, attrPortInfo, 2)); got[smpData+offPhysical]>>4 != physicalDisabled {
		t.Errorf("physical state %x", got[smpData+offPhysical])
	}
	if st := setPort(t, s, 1, 2, func(p *portInfo) { p.setState(0, physicalPolling) }); st != statusOK {
		t.Fatalf("status %#x", st)
	}
	if got := s.Shown(1); got.State != stateActive || got.Phys != physicalUp || got.Disabled {
		t.Errorf("%+v after it was enabled", got)
	}
}

// A Set of an impossible value is refused and changes nothing.
func TestRefusedSet(t *testing.T) {
	for name, change := range map[string]func(*portInfo){
		"LID 0":           func(p *portInfo) { copy(p[offLID:], []byte{0, 0}) },
		"a group's LID":   func(p *portInfo) { copy(p[offLID:], []byte{0xc0, 0}) },
		"state 2":         func(p *portInfo) { p.setState(stateInit, 0) },
		"state 9":         func(p *portInfo) { p.setState(9, 0) },
		"physical 7":      func(p *portInfo) { p.setState(0, 7) },
		"too large a MTU": func(p *portInfo) { p.setNeighborMTU(mtu4096) },
		"two lanes":       func(p *portInfo) { p[offOperVLs] = 2 << 4 },
		"armed, from active": func(p *portInfo) {
			p.setState(stateArmed, 0)
		},
	} {
		s, _ := three(t)
		before := s.devices[0].info
		if st := setPort(t, s, 0x10, 1, func(p *portInfo) { change(p); p[offHighLimit] = 99 }); st != statusBadValue {
			t.Errorf("%s: status %#x, expected %#x", name, st, statusBadValue)
		}
		if s.devices[0].info != before {
			t.Errorf("%s: the port has changed", name)
		}
	}
}

// If another subnet manager runs, ours does nothing and reports that. The other one's settings stay, and ours is
// active again when it ends.
func TestAnotherManager(t *testing.T) {
	s, ports := three(t)
	s.Claim(1)
	if s.Shown(1).CapabilityMask&capIsSM == 0 || s.home.info.capabilities()&capIsSM != 0 {
		t.Error("IsSM is not the other one's")
	}
	if got := one(t, s, 0, 1, smp(MethodGet, attrSMInfo, 0)); got[smpData+20]&0xf != byte(smNotActive) {
		t.Errorf("SMState %d", got[smpData+20]&0xf)
	}
	if got := one(t, s, 0, 1, admin(MethodGet, attrNodeRecord, 0)); got[5] != byte(statusBadAttribute) {
		t.Errorf("our subnet administration answers %x", got[4:6])
	}
	ports[0].Up = false
	s.Update(ports)
	ports[0].Up = true
	s.Update(ports)
	if got := s.Shown(0).State; got != stateInit {
		t.Errorf("state %d before the other one has done anything", got)
	}
	for _, state := range []byte{stateArmed, stateActive} {
		m := smp(MethodSet, attrPortInfo, 1).along(1, 1)
		p := s.devices[0].info
		p.setState(state, 0)
		p.setSMLID(0x20)
		copy(m[smpData:], p[:])
		if got := one(t, s, 1, permissiveLID, m.along(1, 1)); binary.BigEndian.Uint16(got[4:])&0x7fff != 0 ||
			s.Shown(0).State != state {
			t.Errorf("state %d, wanted %d: %x", s.Shown(0).State, state, got[4:6])
		}
	}
	for _, state := range []byte{stateArmed, stateActive} { // and the switch's end
		m := smp(MethodSet, attrPortInfo, 1).along(1)
		p := s.devices[0].peer.info
		p.setState(state, 0)
		copy(m[smpData:], p[:])
		one(t, s, 1, permissiveLID, m)
	}
	// Requests for its subnet administration and its SMInfo are passed to it.
	for _, m := range []MAD{admin(MethodGetTable, attrNodeRecord, 0), smp(MethodGet, attrSMInfo, 0)} {
		got := s.Send(0, Packet{DLID: 0x20, MAD: m})
		if len(got) != 1 || got[0].Device != 1 || got[0].SLID != 0x10 || got[0].MAD.Response() {
			t.Errorf("%v", got)
		}
	}
	s.Release(1)
	if got := s.Shown(0); got.SMLID != 1 || s.Shown(1).CapabilityMask&capIsSM != 0 {
		t.Errorf("after it ended: %+v", got)
	}
	if got := one(t, s, 0, 1, smp(MethodGet, attrSMInfo, 0)); got[smpData+20]&0xf != byte(smMaster) {
		t.Errorf("SMState %d", got[smpData+20]&0xf)
	}
}

func perf(method byte, attribute uint16, port byte, selected uint16) MAD {
	m := smp(method, attribute, 0)
	m[1] = ClassPerf
	m[perfData+1] = port
	binary.BigEndian.PutUint16(m[perfData+2:], selected)
	return m
}

func TestCounters(t *testing.T) {
	s, ports := three(t)
	for _, c := range []struct {
		name string
		dlid uint16
		m    MAD
		want string
	}{
		{"PortCounters", 0x10, perf(MethodGet, attrPortCounters, 1, 0),
			"00 01 0000 0000 00 01 0000 0000 0000 0000 00 00 00 00 0000 0000 000000c8 00000064 00000005 00000003 00000000"},
		{"the switch's end", 1, perf(MethodGet, attrPortCounters, 1, 0),
			"00 01 0000 0000 00 01 0000 0000 0000 0000 00 00 00 00 0000 0000 00000064 000000c8 00000003 00000005 00000000"},
		{"all of the switch's", 1, perf(MethodGet, attrExtended, allPorts, 0),
			"00 ff 0000 00000000 0000000000000064 00000000000000c8 0000000000000003 0000000000000005 0000000000000003 0000000000000005"},
		{"ClassPortInfo", 0x10, perf(MethodGet, attrClassPortInfo, 0, 0), "01 01 0300 00000010"},
	} {
		got := one(t, s, 0, c.dlid, c.m)
		if want := unhex(t, c.want); got[4] != 0 || got[5] != 0 || !bytes.Equal(got[perfData:perfData+len(want)], want) {
			t.Errorf("%s:\n%x, expected\n%x", c.name, got[perfData:perfData+len(want)], want)
		}
	}
	// Selected counters are cleared, in one attribute only; then they continue to count.
	one(t, s, 0, 0x10, perf(MethodSet, attrPortCounters, 1, 1<<12))
	ports[0].Counters.TxBytes += 40
	ports[0].Counters.RxErrors = math.MaxUint32
	s.Update(ports)
	got := one(t, s, 0, 0x10, perf(MethodGet, attrPortCounters, 1, 0))
	if v := get(got[perfData:], 192, 32); v != 10 {
		t.Errorf("PortXmitData is %d, expected 10", v)
	}
	if v := get(got[perfData:], 64, 16); v != math.MaxUint16 {
		t.Errorf("PortRcvErrors is %d, expected the largest", v)
	}
	if v := get(one(t, s, 0, 0x10, perf(MethodGet, attrExtended, 1, 0))[perfData:], 64, 64); v != 210 {
		t.Errorf("PortXmitData of PortCountersExtended is %d, expected 210", v)
	}
	if got := one(t, s, 0, 0x10, perf(MethodGet, attrPortCounters, 2, 0)); got[5] != byte(statusBadValue) {
		t.Errorf("a port there isn't: status %x", got[4:6])
	}
}

// admin sends a request to the subnet administration.
func admin(method byte, attribute uint16, mask uint64) MAD {
	m := smp(method, attribute, 0)
	m[1], m[2] = ClassAdmin, adminVersion
	binary.BigEndian.PutUint64(m[offMask:], mask)
	return m
}

func TestRecords(t *testing.T) {
	with := func(m MAD, at int, text string) MAD {
		copy(m[adminData+at:], unhex(t, text))
		return m
	}
	for _, c := range []struct {
		name  string
		m     MAD
		count int
		want  string // the beginning of the first record
	}{
		{"all nodes", admin(MethodGetTable, attrNodeRecord, 0), 4, "0001 0000 01 01 02 03 016c0afffe090001"},
		{"a node by LID", with(admin(MethodGetTable, attrNodeRecord, 1), 0, "0020"), 1,
			"0020 0000 01 01 01 01 006c0afffe090002"},
		{"adapters", with(admin(MethodGetTable, attrNodeRecord, 1<<4), 6, "01"), 3, "0010 0000 01 01 01 01 006c0afffe090001"},
		{"nodes by name", with(admin(MethodGetTable, attrNodeRecord, 1<<14), 44, hex.EncodeToString([]byte("host urdma2"))),
			1, "0030"},
		{"nobody", with(admin(MethodGetTable, attrNodeRecord, 1), 0, "7777"), 0, ""},
		{"all ports", admin(MethodGetTable, attrPortInfoRecord, 0), 7, "0001 00 00 0000000000000000 fe80000000000000 0001"},
		{"a switch's port", with(admin(MethodGetTable, attrPortInfoRecord, 3), 0, "0001 02"), 1, "0001 02 00"},
		{"paths from a port", with(admin(MethodGetTable, attrPathRecord, 1<<pathSLID), 42, "0020"), 4,
			"0000000000000000 fe80000000000000016c0afffe090001 fe80000000000000006c0afffe090002 0001 0020 00000000 00 80 ffff 0000 85 87 92 00"},
		{"one way", with(with(admin(MethodGetTable, attrPathRecord, 1<<pathSLID|1<<pathDGID), 42, "0020"), 8,
			"fe80000000000000006c0afffe090003"), 1,
			"0000000000000000 fe80000000000000006c0afffe090003 fe80000000000000006c0afffe090002 0030 0020"},
		{"subnet managers", func() MAD {
			m := with(admin(MethodGetTable, attrPortInfoRecord, 1<<portCapabilities), 24, "00000002")
			binary.BigEndian.PutUint32(m[20:], anyBits)
			return m
		}(), 1, "0001 00 00"},
		{"groups", admin(MethodGetTable, attrMemberRecord, 0), 0, ""},
		{"links", admin(MethodGetTable, attrLinkRecord, 0), 6, "0001 01 01 0010 0000"},
		{"the subnet manager", admin(MethodGetTable, attrSMInfoRecord, 0), 1, "0001 0000 016c0afffe090001"},
	} {
		s, _ := three(t)
		got := one(t, s, 0, 1, c.m)
		stride := 8 * int(binary.BigEndian.Uint16(got[offAttributeOffset:]))
		if n := len(got) - adminData; got[3] != MethodGetTable|MethodResponse || got[4] != 0 || n != c.count*stride {
			t.Errorf("%s: %d bytes of records of %d: %x", c.name, n, stride, got[:adminData])
			continue
		}
		if want := unhex(t, c.want); !bytes.HasPrefix(got[adminData:], want) {
			t.Errorf("%s:\n%x, expected\n%x", c.name, got[adminData:], want)
		}
		segments := max(1, (len(got)-adminData+segmentData-1)/segmentData)
		if head, want := got[offRMPP:offRMPP+12], binary.BigEndian.AppendUint32(unhex(t, "01 01 ff 00 00000001"),
			uint32(len(got)-adminData+20*segments)); !bytes.Equal(head, want) {
			t.Errorf("%s: RMPP header %x, expected %x", c.name, head, want)
		}
	}
}

// A Get has one answer.
func TestOneRecord(t *testing.T) {
	for _, c := range []struct {
		name string
		m    MAD
		want status
	}{
		{"one", func() MAD { m := admin(MethodGet, attrNodeRecord, 1); m[adminData+1] = 0x20; return m }(), statusOK},
		{"several", admin(MethodGet, attrNodeRecord, 0), statusTooManyRecords},
		{"none", func() MAD { m := admin(MethodGet, attrNodeRecord, 1); m[adminData] = 0x20; return m }(), statusNoRecords},
		{"a component there isn't", admin(MethodGet, attrNodeRecord, 1<<40), statusInvalidRequest},
		{"a record there isn't", admin(MethodGet, 0x7777, 0), statusBadAttribute},
		{"a change", admin(MethodSet, attrNodeRecord, 0), statusBadAttribute},
		{"ClassPortInfo", admin(MethodGet, attrClassPortInfo, 0), statusOK},
		{"a group", admin(MethodSet, attrMemberRecord, 0), statusBadAttribute},
	} {
		s, _ := three(t)
		if got := one(t, s, 0, 1, c.m); status(binary.BigEndian.Uint16(got[4:])) != c.want || len(got) != Size {
			t.Errorf("%s: status %x, expected %#x", c.name, got[4:6], c.want)
		}
	}
}

// TestTrap: another subnet manager gets a trap that names the switch whose link went down or came up.
func TestTrap(t *testing.T) {
	s, ports := three(t)
	for _, claimed := range []bool{false, true} {
		if claimed {
			s.Claim(2)
			for e := range s.endpoints {
				e.info.setSMLID(s.devices[2].info.lid())
			}
		}
		ports[1].Up = !ports[1].Up
		s.Update(ports)
		got := s.Take()
		if len(got) != 0 != claimed {
			t.Fatalf("claimed %v: %d traps", claimed, len(got))
		}
		if claimed && (got[0].Device != 2 || !bytes.Equal(got[0].MAD[smpData:smpData+12],
			unhex(t, "81 000002 0080 0001 0000 0001"))) {
			t.Errorf("device %d is sent %x", got[0].Device, got[0].MAD[smpData:smpData+12])
		}
	}
}

// A MAD for which the subnet has no agent arrives at the device's port; if the port has none, either, it is refused.
func TestVendors(t *testing.T) {
	s, _ := three(t)
	m := smp(MethodGet, 0, 0)
	m[1] = 0x32
	got := s.Send(0, Packet{DLID: 0x20, MAD: m})
	if len(got) != 1 || got[0].Device != 1 || got[0].SLID != 0x10 || !bytes.Equal(got[0].MAD, m) {
		t.Errorf("%v", got)
	}
	if got := one(t, s, 0, 1, m); got[5] != byte(statusBadAttribute) || Unclaimed(got) != nil {
		t.Errorf("the switch answers %x", got[:24])
	}
}

func TestLengths(t *testing.T) {
	for _, n := range []int{0, 1, 199, 200, 201, 1000} {
		m := append(admin(MethodGetTable|MethodResponse, attrNodeRecord, 0)[:adminData], make([]byte, max(n, segmentData))...)
		m[offRMPP+2] = rmppActive
		m.SetTableLength(adminData + n)
		if got := m.TableLength(); got != adminData+n {
			t.Errorf("%d bytes of records: the MAD is %d long", n, got)
		}
	}
	if m := smp(MethodGet, attrNodeInfo, 0); m.TableLength() != Size {
		t.Error("a MAD of another class is not whole")
	}
}

func TestTooManyPorts(t *testing.T) {
	for _, n := range []int{0, topology.MaxPorts + 1} {
		if _, err := New("host", make([]Port, n), nil); err == nil {
			t.Errorf("%d ports: no error", n)
		}
	}
	if _, err := New("host", make([]Port, topology.MaxPorts), nil); err != nil {
		t.Error(err)
	}
}

// Each of urdmad's ports is in the place of the node with its GUID or name, or else at the next switch. LIDs of the
// file are kept if possible, and nodes without a link are not known.
func TestTopology(t *testing.T) {
	const text = `Switch 4 "s1" # "first" lid 9
[1] "s2"[1]
[2] "a"[1]
Switch 4 "s2" # "second" lid 9
Switch 4 "alone"
Ca 1 "a" # "rack urdma1"
caguid=0x006c0afffe090003
Ca 1 "b" # "named otherwise"
[1] "s2"[2]
Ca 1 "c"
[1](77) "s2"[3] # lid 16 lmc 0 "second"
`
	make := func(text string) (*Subnet, []Port, error) {
		parsed, err := topology.Parse("file", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		_, ports := three(t)
		s, err := New("host", ports, parsed)
		return s, ports, err
	}
	s, ports, err := make(text)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range s.devices {
		got = append(got, fmt.Sprintf("%s at %s[%d]", e.node.desc, e.peer.node.desc, e.peer.num))
	}
	if want := []string{"host urdma0 at first[3]", "rack urdma1 at first[2]",
		"named otherwise at second[2]"}; !slices.Equal(got, want) {
		t.Errorf("%q, expected %q", got, want)
	}
	lids := map[string]uint16{}
	for e := range s.ends {
		lids[e.node.desc] = e.info.lid()
	}
	if want := map[string]uint16{"host urdma0": 0x10, "rack urdma1": 0x20, "named otherwise": 0x30, "first": 9,
		"second": 1, "c": 2}; !maps.Equal(lids, want) {
		t.Errorf("LIDs %v, expected %v", lids, want)
	}
	s.Update(ports)
	if c := s.devices[0].counters; c != ports[0].Counters {
		t.Errorf("a device has counted %+v", c)
	}
	for text, want := range map[string]string{
		"Switch 1 \"s\"":                                "file: no switch has a free port for urdma1",
		"Switch 9 \"s\"\nCa 1 \"urdma0\"":               "file:2: found \"urdma0\", which is urdma0, not linked to a switch",
		"Switch 9 \"s\"\nCa 2 \"urdma0\"\n[1] \"s\"[1]": "file:2: found \"urdma0\" with 2 ports, expected 1",
		"switchguid=6c0afffe090001\nSwitch 9 \"s\"":     "file: found GUID 0x6c0afffe090001 of urdma0, which \"s\" has too",
	} {
		if _, _, err := make(text); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, expected %s", text, err, want)
		}
	}
}

// FuzzSend: for any MADs the subnet continues to work, and each answer is complete.
func FuzzSend(f *testing.F) {
	s, ports := three(f)
	for _, m := range []MAD{smp(MethodGet, attrNodeInfo, 0).along(1, 2), smp(MethodSet, attrPortInfo, 1),
		smp(MethodSet, attrLFT, 2), smp(MethodSet, attrMFT, 1),
		smp(MethodSet, attrSwitchInfo, 0), perf(MethodSet, attrPortCounters, allPorts, 0xffff),
		perf(MethodGet, attrExtended, 1, 0),
		admin(MethodGetTable, attrPathRecord, 1<<pathSLID), admin(MethodGet, attrNodeRecord, math.MaxUint64),
		smp(MethodSet, attrPKeyTable, 0x10000)} {
		f.Add([]byte(m), uint16(1))
		f.Add([]byte(m), uint16(0x20))
	}
	f.Fuzz(func(t *testing.T, b []byte, dlid uint16) {
		for _, d := range s.Send(0, Packet{DLID: dlid, MAD: b}) {
			if d.Device < 0 || d.Device >= len(ports) || len(d.MAD) < adminData {
				t.Fatalf("%d bytes for device %d", len(d.MAD), d.Device)
			}
			Unclaimed(d.MAD)
		}
		ports[1].Up = !ports[1].Up
		s.Update(ports)
		for _, n := range s.nodes {
			for _, e := range n.ports {
				if e != nil && e.peer != nil && e.joined() != e.peer.joined() {
					t.Fatal("a link is up at one end")
				}
			}
		}
	})
}
