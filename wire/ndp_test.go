package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"
)

// Frames of Linux 6.18, as in ipv6_test.go: a solicitation and its advertisement, a duplicate address detection
// probe, and multicast listener messages.
const (
	solicitFrame = `3333 ff00 000b 0200 0000 000a 86dd 6000 0000 0020 3aff fd00 0009 0000 0000 0000 0000 0000 000a
		ff02 0000 0000 0000 0000 0001 ff00 000b 8700 7d61 0000 0000 fd00 0009 0000 0000 0000 0000 0000 000b 0101 0200 0000
		000a`
	advertiseFrame = `0200 0000 000a 0200 0000 000b 86dd 6000 0000 0020 3aff fd00 0009 0000 0000 0000 0000 0000 000b
		fd00 0009 0000 0000 0000 0000 0000 000a 8800 1c5b 6000 0000 fd00 0009 0000 0000 0000 0000 0000 000b 0201 0200 0000
		000b`
	probeFrame = `3333 ff00 000a 0200 0000 000a 86dd 6000 0000 0020 3aff 0000 0000 0000 0000 0000 0000 0000 0000
		ff02 0000 0000 0000 0000 0001 ff00 000a 8700 32ac 0000 0000 fd00 0009 0000 0000 0000 0000 0000 000a 0e01 2b86 9ebd
		7291`
	joinFrame = `3333 0000 0016 0200 0000 000a 86dd 6000 0000 0024 0001 fe80 0000 0000 0000 0000 00ff fe00 000a
		ff02 0000 0000 0000 0000 0000 0000 0016 3a00 0502 0000 0100 8f00 5eba 0000 0001 0400 0000 ff15 0000 0000 0000 0000
		0000 0000 1234`
	leaveFrame = `3333 0000 0016 0200 0000 000a 86dd 6000 0000 0024 0001 fe80 0000 0000 0000 0000 00ff fe00 000a
		ff02 0000 0000 0000 0000 0000 0000 0016 3a00 0502 0000 0100 8f00 5fba 0000 0001 0300 0000 ff15 0000 0000 0000 0000
		0000 0000 1234`
)

// ndpOf parses a frame with a message.
func ndpOf(t testing.TB, b []byte) (f Frame, p NDP, err error) {
	t.Helper()
	if err := f.Parse(b, len(b)); err != nil {
		t.Fatal(err)
	}
	return f, p, p.Parse(&f, b[f.PayloadOff:f.PayloadOff+f.PayloadLen])
}

func TestNDPGolden(t *testing.T) {
	for _, c := range []struct {
		name, hex string
		want      NDP
	}{
		{"solicitation", solicitFrame, NDP{Type: ICMPv6Solicit, Target: ip6B, MAC: macA, HasMAC: true}},
		{"advertisement", advertiseFrame,
			NDP{Type: ICMPv6Advertise, Solicited: true, Override: true, Target: ip6B, MAC: macB, HasMAC: true}},
	} {
		b := unhex(t, c.hex)
		f, got, err := ndpOf(t, b)
		if err != nil || got != c.want {
			t.Errorf("%s: %v\n got %+v\nwant %+v", c.name, err, got, c.want)
		}
		out := make([]byte, NDPFrameLen)
		if n := got.Put(out, f.Src, f.Dst, f.Src6, f.Dst6); n != len(b) {
			t.Errorf("%s: %d bytes", c.name, n)
		}
		sameBytes(t, c.name, out, b)
	}
	f, got, err := ndpOf(t, unhex(t, probeFrame)) // with a nonce (RFC 7527), which we ignore
	if want := (NDP{Type: ICMPv6Solicit, Target: ip6A}); err != nil || got != want || f.Dst6 != SolicitedNode(ip6A) ||
		f.Dst != Group6MAC(f.Dst6) {
		t.Errorf("probe: %v %+v in %+v", err, got, f)
	}
}

func TestNDPRefusals(t *testing.T) {
	at := func(i int, v ...byte) func(b []byte) []byte {
		return func(b []byte) []byte { copy(b[i:], v); return b }
	}
	group := make([]byte, 16)
	group[0] = 0xff
	for _, c := range []struct {
		name, frame string
		edit        func(b []byte) []byte
		want        error
	}{
		{"unchanged", solicitFrame, at(0), nil},
		{"passed on by a router", solicitFrame, at(21, 254), ErrNDPHopLimit},
		{"short", solicitFrame, func(b []byte) []byte { b[19] = 23; return b }, ErrNDPShort},
		{"redirect", solicitFrame, at(54, 137), ErrNDPKind},
		{"code 1", solicitFrame, at(55, 1), ErrNDPKind},
		{"target is a group", solicitFrame, at(62, group...), ErrNDPAddress},
		{"target is nobody", solicitFrame, at(62, make([]byte, 16)...), ErrNDPAddress},
		{"option of length 0", solicitFrame, at(79, 0), ErrNDPOption},
		{"option beyond the message", solicitFrame, at(79, 2), ErrNDPOption},
		{"address is a group's", solicitFrame, at(80, 3), ErrNDPOption},
		{"another option", solicitFrame, at(78, 77), nil},
		{"from a group", solicitFrame, at(22, 0xff), ErrNDPAddress},
		{"from nobody with an address", solicitFrame, at(22, make([]byte, 16)...), ErrNDPAddress},
		{"from nobody to one host", probeFrame, at(38, ip6A[:]...), ErrNDPAddress},
		{"answer from nobody", advertiseFrame, at(22, make([]byte, 16)...), ErrNDPAddress},
		{"answer to a group", advertiseFrame, at(38, AllNodes[:]...), ErrNDPAddress},
		{"news for a group", advertiseFrame, func(b []byte) []byte { b[58] = 0x20; copy(b[38:], AllNodes[:]); return b },
			nil},
	} {
		b := c.edit(unhex(t, c.frame))
		var f Frame
		if err := f.Parse(b, len(b)); err != nil {
			t.Fatal(err)
		}
		message := b[f.PayloadOff : f.PayloadOff+f.PayloadLen]
		putICMPv6Checksum(message, f.Src6, f.Dst6)
		var p NDP
		if err := p.Parse(&f, message); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}

// TestNDPNoticesEveryBit: the checksum covers addresses and message.
func TestNDPNoticesEveryBit(t *testing.T) {
	b := unhex(t, solicitFrame)
	for i := 22; i < len(b); i++ {
		for bit := range 8 {
			b[i] ^= 1 << bit
			if _, _, err := ndpOf(t, b); err == nil {
				t.Errorf("bit %d of byte %d changes nothing", bit, i)
			}
			b[i] ^= 1 << bit
		}
	}
}

func TestMLDReportGolden(t *testing.T) {
	group := IPv6{0: 0xff, 1: 0x15, 14: 0x12, 15: 0x34}
	for want, change := range map[string]MLDChange{joinFrame: MLDJoin, leaveFrame: MLDLeave} {
		b := bytes.Repeat([]byte{0xee}, MLDFrameLen)
		(&MLDReport{Change: change, Group: group}).Put(b, macA, LinkLocal(macA))
		sameBytes(t, "report", b, unhex(t, want))
	}
}

// mldQuery is a query of MLDv2 from fe80::1 for a group.
func mldQuery(group IPv6) []byte {
	b := make([]byte, MLDFrameLen)
	src := IPv6{0: 0xfe, 1: 0x80, 15: 1}
	(&MLDReport{Group: group}).Put(b, macB, src)
	b[62], b[66] = ICMPv6MLDQuery, 0
	copy(b[70:], group[:])
	clear(b[86:])
	putICMPv6Checksum(b[62:], src, AllMLDv2Routers)
	return b
}

func TestMLDQuery(t *testing.T) {
	group := IPv6{0: 0xff, 1: 0x15, 15: 7}
	parse := func(b []byte) (MLDQuery, error) {
		var f Frame
		if err := f.Parse(b, len(b)); err != nil {
			t.Fatal(err)
		}
		var q MLDQuery
		err := q.Parse(&f, b[f.PayloadOff:f.PayloadOff+f.PayloadLen])
		return q, err
	}
	if q, err := parse(mldQuery(group)); err != nil || q.Group != group {
		t.Errorf("%v %+v", err, q)
	}
	for name, edit := range map[string]func(b []byte){
		"checksum":        func(b []byte) { b[64]++ },
		"hop limit 2":     func(b []byte) { b[21] = 2 },
		"not of the link": func(b []byte) { b[22] = 0xfd; putICMPv6Checksum(b[62:], IPv6(b[22:38]), AllMLDv2Routers) },
		"a report": func(b []byte) {
			b[62] = ICMPv6MLDReport
			putICMPv6Checksum(b[62:], IPv6(b[22:38]),
				AllMLDv2Routers)
		},
		"shorter than that": func(b []byte) { b[19] = 8 + 23 },
		"of no version":     func(b []byte) { b[19] = 8 + 25; putICMPv6Checksum(b[62:87], IPv6(b[22:38]), AllMLDv2Routers) },
		"sources missing":   func(b []byte) { b[89] = 1; putICMPv6Checksum(b[62:], IPv6(b[22:38]), AllMLDv2Routers) },
	} {
		b := mldQuery(group)
		edit(b)
		if _, err := parse(b); !errors.Is(err, ErrMLD) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestQuerySources: an MLDv2 or IGMPv3 query has as many sources as it says; bytes behind them are ignored.
func TestQuerySources(t *testing.T) {
	for _, c := range []struct {
		length, says int
		igmp, mld    bool
	}{
		{8, 0, true, false}, {9, 0, false, false}, {11, 0, false, false}, {12, 0, true, false}, {12, 1, false, false},
		{16, 1, true, false}, {24, 3, true, true}, {25, 0, true, false}, {27, 0, true, false}, {28, 0, true, true},
		{28, 1, true, false},
		{43, 1, true, false}, {44, 1, true, true}, {45, 1, true, true}, {28 + 4*16, 4, true, true},
		{28 + 4*16, 5, true, false}, {1024, 0xffff, false, false},
	} {
		b := make([]byte, c.length)
		b[0] = byte(IGMPQuery)
		if c.length >= 12 {
			binary.BigEndian.PutUint16(b[10:], uint16(c.says))
		}
		binary.BigEndian.PutUint16(b[2:], ^Fold(Checksum(0, b)))
		var g IGMP
		if g.Parse(b) != c.igmp {
			t.Errorf("IGMP of %d bytes with %d sources: taken %v", c.length, c.says, !c.igmp)
		}
		clear(b)
		b[0] = ICMPv6MLDQuery
		if c.length >= 28 {
			binary.BigEndian.PutUint16(b[26:], uint16(c.says))
		}
		f := Frame{TTL: 1, Src6: IPv6{0: 0xfe, 1: 0x80, 15: 1}, Dst6: AllNodes, PayloadLen: c.length}
		putICMPv6Checksum(b, f.Src6, f.Dst6)
		var q MLDQuery
		if err := q.Parse(&f, b); (err == nil) != c.mld {
			t.Errorf("MLD of %d bytes with %d sources: %v", c.length, c.says, err)
		}
	}
}

func TestGroupAddresses(t *testing.T) {
	a := IPv6{0: 0xfd, 12: 0xab, 13: 0xcd, 14: 0xef, 15: 0x12}
	if got := SolicitedNode(a).String(); got != "ff02::1:ffcd:ef12" {
		t.Error(got)
	}
	if got := Group6MAC(SolicitedNode(a)).String(); got != "33:33:ff:cd:ef:12" {
		t.Error(got)
	}
	// RFC 2464 section 5
	if got := LinkLocal(MAC{0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde}).String(); got != "fe80::3656:78ff:fe9a:bcde" {
		t.Error(got)
	}
	if !AllNodes.IsGroup() || !(IPv6{}).IsGroup() || a.IsGroup() || a.IsLinkLocal() || !LinkLocal(macA).IsLinkLocal() ||
		AllNodes.IsLinkLocal() {
		t.Error("IsGroup, IsLinkLocal")
	}
}
