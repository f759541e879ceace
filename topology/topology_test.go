package topology

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

const printed = `#
# Topology file: generated on Mon Nov 23 21:00:00 2026
#
# Initiated from node 006cc6fffe120101 port 006cc6fffe120101

vendid=0x757264
devid=0x1
sysimgguid=0x16cc6fffe120101
switchguid=0x16cc6fffe120101(16cc6fffe120101)
Switch	2 "S-016cc6fffe120101"		# "a switch" base port 0 lid 5 lmc 0
[1]	"H-006cc6fffe120101"[1](6cc6fffe120102) 		# "host urdma0" lid 257 4xQDR
[2]	"H-006cc6fffe120202"[1](6cc6fffe120202) 		# "host urdma1" lid 514 4xQDR

vendid=0x757264
devid=0x1
sysimgguid=0x6cc6fffe120101
caguid=0x6cc6fffe120101
Ca	1 "H-006cc6fffe120101"		# "host urdma0"
[1](6cc6fffe120102) 	"S-016cc6fffe120101"[1]		# lid 257 lmc 0 "a switch" lid 5 4xQDR

Ca	1 "H-006cc6fffe120202"		# "host urdma1"
`

func TestParse(t *testing.T) {
	got, err := Parse("file", []byte(printed))
	if err != nil {
		t.Fatal(err)
	}
	sw := &Node{Switch: true, ID: "S-016cc6fffe120101", GUID: 0x16cc6fffe120101, Name: "a switch", LID: 5, Line: 10,
		Ports: make([]Port, 3)}
	one := &Node{ID: "H-006cc6fffe120101", GUID: 0x6cc6fffe120101, Name: "host urdma0", Line: 18, Ports: make([]Port, 2)}
	two := &Node{ID: "H-006cc6fffe120202", GUID: 0x6cc6fffe120202, Name: "host urdma1", Line: 21, Ports: make([]Port, 2)}
	sw.Ports[1], sw.Ports[2] = Port{Peer: one, PeerPort: 1, line: 11}, Port{Peer: two, PeerPort: 1, line: 12}
	one.Ports[1] = Port{GUID: 0x6cc6fffe120102, LID: 257, Peer: sw, PeerPort: 1, line: 19}
	two.Ports[1] = Port{GUID: 0x6cc6fffe120202, Peer: sw, PeerPort: 2}
	if want := []*Node{sw, one, two}; !reflect.DeepEqual(got.Nodes, want) {
		t.Errorf("%+v, expected %+v", got.Nodes, want)
	}
}

// TestExample: the file of docs/fabric.md has the links that it says.
func TestExample(t *testing.T) {
	const file = "../examples/fabric.topology"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Parse(file, text)
	if err != nil {
		t.Fatal(err)
	}
	links, hosts := 0, 0
	for _, n := range got.Nodes {
		for _, p := range n.Ports {
			if p.Peer != nil {
				links++
			}
		}
		if !n.Switch {
			hosts++
		}
	}
	if hosts != 32 || len(got.Nodes) != 36 || links != 2*(32+6) {
		t.Errorf("%d nodes, %d hosts, %d ends of links", len(got.Nodes), hosts, links)
	}
}

func TestRefused(t *testing.T) {
	for _, x := range [][2]string{
		{"", "file: no nodes"},
		{"Rt 2 \"r\"", `file:1: found "Rt 2 \"r\"", expected Switch or Ca`},
		{"[1] \"a\"[1]", "file:1: found a link before any node"},
		{"Switch 0 \"a\"", "file:1: found 0 ports of \"a\", expected 1 to 253"},
		{"Switch 254 \"a\"", "file:1: found 254 ports"},
		{"Ca 1 \"a\" # \"" + strings.Repeat("x", 65) +
			"\"", "file:1: found a name of 65 bytes, expected 64 at most"},
		{"Ca 1 \"a\"\nCa 1 \"a\"", "file:2: found a second node \"a\", the first is that of line 1"},
		{"Ca 1 \"a\"\n[2] \"b\"[1]", "file:2: found port 2 of \"a\", expected 1 to 1"},
		{"Ca 1 \"a\"\n[1] \"b\"[1]", "file:2: found a link to \"b\", expected a node of this file"},
		{"Ca 2 \"a\"\n[1] \"a\"[2]", "file:2: found a link from \"a\" to itself"},
		{"Ca 1 \"a\"\n[1] \"b\"[3]\nCa 2 \"b\"", "file:2: found a link to port 3 of \"b\", expected 1 to 2"},
		{"Ca 1 \"a\"\n[1] \"b\"[1]\n[1] \"b\"[1]\nCa 2 \"b\"",
			"file:3: found port 1 of \"a\" a second time, the first is line 2"},
		{"Ca 1 \"a\"\n[1] \"b\"[1]\nCa 2 \"b\"\n[1] \"c\"[1]\nCa 1 \"c\"",
			"file:2: found a link to port 1 of \"b\", which line 4 has another link for"},
		{"Ca 1 \"a\"\n[1] \"b\"[1]\nCa 1 \"c\"\n[1] \"b\"[1]\nCa 1 \"b\"",
			"file:4: found a link to port 1 of \"b\", which line 2 has another link for"},
		{"caguid=0x5\nCa 1 \"a\"\ncaguid=0x5\nCa 1 \"b\"",
			"file:4: found GUID 0x5 a second time, the first is that of line 2"},
		{"Switch 1 \"s\"\nCa 1 \"a\"\n[1](7) \"s\"[1]\nCa 1 \"b\"\n[1](7) \"c\"[1]\nSwitch 1 \"c\"",
			"file:5: found GUID 0x7 a second time"},
	} {
		text, want := x[0], x[1]
		if _, err := Parse("file", []byte(text)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, expected %s", text, err, want)
		}
	}
}

// FuzzParse: any text is refused, or its links agree.
func FuzzParse(f *testing.F) {
	f.Add([]byte(printed))
	f.Add([]byte("Switch 8 \"s\"\n[1] \"h\"[1]\nHca 1 \"h\"\n[1](5) \"s\"[1]"))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := Parse("file", b)
		if err != nil {
			return
		}
		for _, n := range got.Nodes {
			for num, p := range n.Ports {
				if p.Peer != nil && (p.Peer.Ports[p.PeerPort].Peer != n || p.Peer.Ports[p.PeerPort].PeerPort != num) {
					t.Fatalf("the ends of %s[%d] differ", n.ID, num)
				}
			}
		}
	})
}
