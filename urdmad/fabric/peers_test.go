package fabric

import (
	"bytes"
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
