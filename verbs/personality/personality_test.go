package personality

import (
	"encoding/hex"
	"net/netip"
	"testing"

	"urdma/verbs/abi"
)

func TestDescribe(t *testing.T) {
	port := Port{MAC: [6]byte{2, 0, 0, 1, 2, 3}, Addr: netip.MustParseAddr("10.1.2.3")}
	for _, c := range []struct {
		name                             string
		node, transport, link, gids, lid uint32
		gid                              string
	}{
		{IWARP, 4, 1, 2, 0, 0, "00000000000000000000ffff0a010203"},
		{IB, 1, 0, 1, 0, 0x203, "fe80000000000000000000fffe010203"},
		{RoCE, 1, 0, 2, 2, 0, "00000000000000000000ffff0a010203"},
	} {
		p := Named(c.name)
		if p == nil || p != Numbered(p.Transport) {
			t.Errorf("%s: named and numbered differ", c.name)
			continue
		}
		var d abi.Device
		p.Describe(&port, &d)
		if d.NodeType != c.node || d.TransportType != c.transport || d.LinkLayer != c.link || d.GIDType != c.gids ||
			d.LID != c.lid {
			t.Errorf("%s: %+v", c.name, d)
		}
		if got := hex.EncodeToString(d.GID[:]); got != c.gid {
			t.Errorf("%s: GID %s, expected %s", c.name, got, c.gid)
		}
	}
	if len(Names()) != len(table) || Named("myrinet") != nil || Numbered(99) != nil {
		t.Error("there is a personality without a name or number")
	}
}

func TestUnicastLID(t *testing.T) {
	for _, c := range []struct {
		addr string
		lid  uint16
		ok   bool
	}{
		{"10.0.0.0", 0, false}, {"10.0.0.1", 1, true}, {"10.0.191.255", 0xbfff, true}, {"10.0.192.0", 0xc000, false},
		{"2001:db8::17", 0x17, true},
	} {
		lid, ok := UnicastLID(netip.MustParseAddr(c.addr))
		if lid != c.lid || ok != c.ok {
			t.Errorf("%s: %#x, %v", c.addr, lid, ok)
		}
		want := uint16(0)
		if c.ok {
			want = c.lid
		}
		if got := Named(IB).LID(&Port{Addr: netip.MustParseAddr(c.addr)}); got != want {
			t.Errorf("%s under ib: LID %#x, expected %#x", c.addr, got, want)
		}
	}
	if _, ok := UnicastLID(netip.Addr{}); ok || Named(RoCE).LID(&Port{Addr: netip.MustParseAddr("10.0.0.1")}) != 0 {
		t.Error("a LID from nothing")
	}
}
