package fabric

import (
	"bytes"
	"fmt"
	"testing"

	"urdma/topology"
)

var neighbour = Peer{Node: 0x77, Ports: 1, Number: 1, GUID: 0x77, Name: "other urdma0", LID: 0x40, MTU: 5, Up: true}

// TestPeersInSubnet: another urdmad's port is a channel adapter at the switch with the LID of its
// address, and is known by what it says of itself.
func TestPeersInSubnet(t *testing.T) {
	_, ports := three(t)
	ports[0].Wire = true
	s, err := New("host", ports, nil)
	if err != nil {
		t.Fatal(err)
	}
	var p Peer
	other, _ := three(t)
	for _, m := range PeerRequests() {
		answer, list := other.Arrive(1, -1, m)
		if len(list) != 0 {
			t.Errorf("delivered: %v", list)
		}
		if p.Known() {
			t.Error("known before all was said")
		}
		p.Learn(answer)
	}
	if want := (Peer{Node: 0x006c0afffe090002, Ports: 1, Number: 1, GUID: 0x006c0afffe090002, Name: "host urdma1", LID: 0x20, MTU: 5, Up: true}); p != want {
		t.Errorf("%+v, expected %+v", p, want)
	}
	s.UpdatePeers([]Peer{p, neighbour}) // of which the first has a GUID of ours
	if names := s.Nodes(); len(names) != 5 || names[4] != "other urdma0" {
		t.Fatalf("nodes: %q", names)
	}
	if got := one(t, s, 1, 0x40, smp(MethodGet, attrNodeDescription, 0)); !bytes.HasPrefix(got[smpData:], []byte("other urdma0\x00")) {
		t.Errorf("NodeDescription %q", got[smpData:])
	}
	// Requests of programs are for it, and not for a subnet manager of its own.
	for class, crosses := range map[byte]bool{0x32: true, ClassPerf: true, ClassAdmin: false} {
		m := smp(MethodGet, 0x12, 0)
		m[1] = class
		got := s.Send(1, Packet{DLID: 0x40, MAD: m})
		if crosses != (len(got) == 1 && got[0].Device == -1 && got[0].Peer == 1) {
			t.Errorf("class %#x: %v", class, got)
		}
	}
	renamed := neighbour
	renamed.Name, renamed.LID, renamed.Up = "renamed", 0x41, false
	s.UpdatePeers([]Peer{p, renamed})
	if got := s.Send(1, Packet{DLID: 0x41, MAD: smp(MethodGet, attrNodeDescription, 0)}); len(got) != 0 {
		t.Error("a link that is down carries something")
	}
	renamed.Up = true
	s.UpdatePeers([]Peer{p, renamed})
	if got := one(t, s, 1, 0x41, smp(MethodGet, attrNodeDescription, 0)); !bytes.HasPrefix(got[smpData:], []byte("renamed\x00")) {
		t.Errorf("NodeDescription %q", got[smpData:])
	}
}

// TestPeersArrive: what comes from a peer's port is from its LID, and reaches programs alone.
func TestPeersArrive(t *testing.T) {
	_, ports := three(t)
	ports[0].Wire = true
	s, err := New("host", ports, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.UpdatePeers([]Peer{neighbour})
	for _, c := range []struct {
		class, method      byte
		attribute          uint16
		peer               int
		answers, delivered bool
	}{
		{0x32, MethodGet, 1, 0, false, true},
		{0x32, MethodGet, 1, -1, false, false},
		{0x32, MethodGet, 1, 5, false, false},
		{ClassPerf, MethodGet, attrExtended, -1, true, false},
		{ClassSubnet, MethodGet, attrPortInfo, -1, true, false},
		{ClassSubnet, MethodGet, attrSMInfo, 0, false, false},
		{ClassSubnet, MethodSet, attrPortInfo, 0, false, false},
		{ClassSubnet, MethodTrap, attrNotice, 0, false, false},
		{ClassDirected, MethodGet, attrNodeInfo, 0, false, false},
		{ClassAdmin, MethodGet, attrNodeRecord, 0, false, false},
	} {
		m := smp(c.method, c.attribute, 0)
		m[1], m[perfData+1] = c.class, 1
		answer, list := s.Arrive(1, c.peer, m)
		if (answer != nil) != c.answers || (len(list) == 1) != c.delivered || len(list) > 1 {
			t.Errorf("%+v: answer %x, delivered %v", c, answer, list)
		}
		if len(list) == 1 && (list[0].Device != 1 || list[0].SLID != 0x40 || list[0].DLID != 0x20) {
			t.Errorf("%+v", list[0])
		}
	}
	if answer, list := s.Arrive(0, 0, MAD{1, 2, 3}); answer != nil || list != nil {
		t.Error("three bytes are a MAD")
	}
}

// TestPeersInTopology: a peer takes the place of the channel adapter with its GUID, or any free port; when there
// is none it is not there.
func TestPeersInTopology(t *testing.T) {
	topo, err := topology.Parse("file", []byte("Switch 3 \"S-0000000000000001\" # \"s\"\n[1] \"H-0000000000000077\"[1]\n[2] \"H-0000000000000002\"[1]\nCa 1 \"H-0000000000000077\" # \"old name\"\n[1] \"S-0000000000000001\"[1]\nCa 1 \"H-0000000000000002\" # \"urdma0\"\n[1] \"S-0000000000000001\"[2]\n"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := New("host", []Port{{Name: "urdma0", GUID: 2, LID: 0x10, Up: true}}, topo)
	if err != nil {
		t.Fatal(err)
	}
	second, third := neighbour, neighbour
	second.GUID, second.Node, second.LID, third.GUID, third.Node = 0x88, 0x88, 0x50, 0x99, 0x99
	s.UpdatePeers([]Peer{neighbour, second, third})
	if got := one(t, s, 0, 0x40, smp(MethodGet, attrNodeInfo, 0)); got[smpData+27] != 0x77 {
		t.Errorf("%x", got[smpData:])
	}
	if s.peers[0].peer.num != 1 || s.peers[1].peer.num != 3 || s.peers[2] != nil || len(s.Nodes()) != 4 {
		t.Errorf("nodes: %q", s.Nodes())
	}
}

// TestPeerOfSeveralPorts: two ports of one device of another urdmad are one channel adapter, in
// whatever order they are heard of; the ports that nobody has heard of are down.
func TestPeerOfSeveralPorts(t *testing.T) {
	_, ports := devicesOf(t)
	other, err := New("other", ports, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := New("host", []Port{{Name: "urdma0", GUID: 0x99, LID: 0x10, Up: true, Wire: true}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var list []Peer
	for _, device := range []int{1, 0} {
		var p Peer
		for _, m := range PeerRequests() {
			answer, _ := other.Arrive(device, -1, m)
			p.Learn(answer)
		}
		list = append(list, p)
		s.UpdatePeers(list)
	}
	if names := s.Nodes(); len(names) != 3 || names[2] != "other hca0" {
		t.Fatalf("nodes: %q", names)
	}
	for lid, want := range map[uint16]struct{ port, guid byte }{0x20: {1, 1}, 0x21: {2, 2}} {
		got := one(t, s, 0, lid, smp(MethodGet, attrNodeInfo, 0))[smpData:]
		if got[3] != 3 || got[19] != 1 || got[27] != want.guid || got[36] != want.port {
			t.Errorf("LID %#x: NodeInfo %x", lid, got[:nodeInfoSize])
		}
	}
	if got := one(t, s, 0, 0x20, smp(MethodGet, attrPortInfo, 3))[smpData:]; got[offState]&0xf != stateDown {
		t.Errorf("state %d of a port that nobody has heard of", got[offState]&0xf)
	}
}

// TestPeerTakesNothing: a peer that is in the subnet and says then that it has the GUID or the LID of
// another, or of ours, or is of another's channel adapter, keeps its own; what is nobody's it gets.
func TestPeerTakesNothing(t *testing.T) {
	s, err := New("host", []Port{{Name: "a", GUID: 1, LID: 0x10, MTU: 1500, Up: true, Wire: true}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	first := Peer{Node: 7, Ports: 1, Number: 1, GUID: 7, Name: "first", LID: 0x31, MTU: 3, Up: true}
	second := first
	second.Node, second.GUID, second.Name, second.LID = 8, 8, "second", 0x32
	s.UpdatePeers([]Peer{first, second})
	own := []*endpoint{s.devices[0], s.peers[0], s.peers[1]}
	for name, change := range map[string]func(p *Peer){
		"GUID of another":        func(p *Peer) { p.GUID = 8 },
		"all of another":         func(p *Peer) { *p = second },
		"channel adapter":        func(p *Peer) { p.Node = 8 },
		"GUID of ours":           func(p *Peer) { p.GUID, p.Node = 1, 1 },
		"LID of another":         func(p *Peer) { p.LID = 0x32 },
		"LID of ours":            func(p *Peer) { p.LID = 0x10 },
		"our channel adapter":    func(p *Peer) { p.Node = 1 },
		"of a switch, as a node": func(p *Peer) { p.Node = s.nodes[0].guid },
	} {
		p := first
		change(&p)
		s.UpdatePeers([]Peer{p, second})
		for i, lid := range []uint16{0x10, 0x31, 0x32} {
			e, guid := own[i], []uint64{1, 7, 8}[i]
			if e.info.lid() != lid || e.guid != guid || e.node.guid != guid {
				t.Errorf("%s: port %d has LID %#x, GUID %#x, node %#x", name, i, e.info.lid(), e.guid, e.node.guid)
			}
		}
		s.UpdatePeers([]Peer{first, second})
	}
	first.GUID, first.Node, first.LID = 9, 9, 0x33
	s.UpdatePeers([]Peer{first, second})
	if e := s.peers[0]; e.guid != 9 || e.node.guid != 9 || e.info.lid() != 0x33 {
		t.Errorf("what is nobody's: LID %#x, GUID %#x, node %#x", e.info.lid(), e.guid, e.node.guid)
	}
	// One that comes so is in no subnet.
	third := Peer{Node: 9, Ports: 1, Number: 1, GUID: 0x77, Name: "third", LID: 0x34, MTU: 3, Up: true}
	if s.UpdatePeers([]Peer{first, second, third}); s.peers[2] != nil {
		t.Errorf("a second channel adapter %#x is at LID %#x", s.peers[2].node.guid, s.PeerLID(2))
	}
}

// TestPeersOfManyPorts: peers that say how many ports they have take no LIDs for those that nothing
// is plugged into: there would not be enough.
func TestPeersOfManyPorts(t *testing.T) {
	const most = 250
	big := &topology.Topology{Nodes: []*topology.Node{{Switch: true, GUID: 1 << 57, Name: "big", Ports: make([]topology.Port, topology.MaxPorts+1)}}}
	s, err := New("host", []Port{{Name: "a", GUID: 1, LID: 0x10, MTU: 1500, Up: true, Wire: true}}, big)
	if err != nil {
		t.Fatal(err)
	}
	var list []Peer
	for i := range uint64(most) {
		list = append(list, Peer{Node: 0x1000 + i, Ports: 255, Number: 1, GUID: 0x2000 + i, Name: fmt.Sprint("peer ", i), LID: 0x100 + uint16(i), MTU: 3, Up: true})
	}
	s.UpdatePeers(list)
	placed, used := 0, map[uint16]bool{}
	for i, e := range s.peers {
		if e != nil {
			placed++
			if e.info.lid() != list[i].LID {
				t.Errorf("peer %d has LID %#x, expected %#x", i, e.info.lid(), list[i].LID)
			}
		}
	}
	for e := range s.ends {
		if lid := e.info.lid(); lid > maxLID || used[lid] && lid != 0 {
			t.Fatalf("a port has LID %#x, which is used or none", lid)
		}
		used[e.info.lid()] = true
	}
	if len(used) > placed+3 { // of device and switch, and 0
		t.Errorf("%d LIDs are given, for %d peers", len(used), placed)
	}
	m := smp(MethodGetTable, 0x15, 0) // LinearForwardingTableRecords
	m[1], m[2] = ClassAdmin, adminVersion
	s.Send(0, Packet{DLID: s.home.info.lid(), MAD: m})
}
