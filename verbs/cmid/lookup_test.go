package cmid

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"testing"
)

// TestLookUp: addresses of both families in package net's format; zones become interface numbers.
func TestLookUp(t *testing.T) {
	lo, err := net.InterfaceByName("lo")
	if err != nil {
		t.Skip(err)
	}
	for address, want := range map[string]string{
		":7":                    "0.0.0.0:7",
		"198.18.0.1:65535":      "198.18.0.1:65535",
		"[fd00::1]:7471":        "[fd00::1]:7471",
		"[::]:0":                "[::]:0",
		"[::ffff:198.18.0.1]:1": "198.18.0.1:1",
		"[fe80::1%lo]:7":        fmt.Sprintf("[fe80::1%%%d]:7", lo.Index),
		"[fe80::1%4711]:7":      "[fe80::1%4711]:7",
	} {
		if got, err := LookUp(context.Background(), address, nil); err != nil || got != netip.MustParseAddrPort(want) {
			t.Errorf("%s is %v (%v), expected %s", address, got, err, want)
		}
	}
	for _, address := range []string{"", "198.18.0.1", "fd00::1:7", "198.18.0.1:65536", "198.18.0.1:http",
		"[fe80::1%no-such-if]:7"} {
		if got, err := LookUp(context.Background(), address, nil); err == nil {
			t.Errorf("%q is %v", address, got)
		}
	}
}

// TestChoose: of a name's addresses the first whose family one of ours has is chosen, or IPv4 if there is
// none.
func TestChoose(t *testing.T) {
	four, six := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("fd00::1")
	mapped := netip.AddrFrom16(four.As16())
	for _, c := range []struct {
		found, ours []netip.Addr
		want        netip.Addr
	}{
		{[]netip.Addr{six, four}, []netip.Addr{four}, four},
		{[]netip.Addr{six, mapped}, []netip.Addr{four}, four},
		{[]netip.Addr{four, six}, []netip.Addr{six}, six},
		{[]netip.Addr{six, four}, []netip.Addr{four, six}, six},
		{[]netip.Addr{six, four}, nil, four},
		{[]netip.Addr{six}, []netip.Addr{four}, six},
	} {
		if got := choose(c.found, c.ours); got != c.want {
			t.Errorf("of %v, with ports %v: %v, expected %v", c.found, c.ours, got, c.want)
		}
	}
}
