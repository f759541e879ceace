package abi

import (
	"net/netip"
	"syscall"
	"testing"
)

func TestAddr(t *testing.T) {
	for _, c := range []struct {
		text string
		want Addr
		back string // "": as text
	}{
		{"10.1.2.3:7471", Addr{Family: syscall.AF_INET, PortBE: [2]byte{0x1d, 0x2f}, Addr: [16]byte{10, 1, 2, 3}}, ""},
		{"0.0.0.0:0", Addr{Family: syscall.AF_INET}, ""},
		{"[::ffff:10.1.2.3]:1", Addr{Family: syscall.AF_INET, PortBE: [2]byte{0, 1}, Addr: [16]byte{10, 1, 2, 3}},
			"10.1.2.3:1"},
		{"[2001:db8::7]:256", Addr{Family: syscall.AF_INET6, PortBE: [2]byte{1, 0},
			Addr: [16]byte{0x20, 0x01, 0x0d, 0xb8, 15: 7}}, ""},
		{"[fe80::1%3]:2", Addr{Family: syscall.AF_INET6, PortBE: [2]byte{0, 2}, ScopeID: 3,
			Addr: [16]byte{0xfe, 0x80, 15: 1}}, ""},
	} {
		got, err := AddrFrom(netip.MustParseAddrPort(c.text))
		if err != nil || got != c.want {
			t.Errorf("%s is %+v (%v), expected %+v", c.text, got, err, c.want)
		}
		if c.back == "" {
			c.back = c.text
		}
		if back := got.AddrPort().String(); back != c.back {
			t.Errorf("%s comes back as %s", c.text, back)
		}
	}
	if _, err := AddrFrom(netip.MustParseAddrPort("[fe80::1%eth0]:2")); err == nil {
		t.Error("a zone that is no number was taken")
	}
}

// TestAddrWithoutFamily: only IPv4 and IPv6 have addresses.
func TestAddrWithoutFamily(t *testing.T) {
	for _, a := range []Addr{{}, {Family: 17, Addr: [16]byte{1}}} {
		if a.AddrPort().Addr().IsValid() {
			t.Errorf("%+v: AddrPort is %v", a, a.AddrPort())
		}
	}
}
