package cm_test

import (
	"errors"
	"net/netip"
	"syscall"
	"testing"

	"urdma/urdmad/core/cm"
)

// linked is a manager with two link-local devices, on the links 3 and 7, and one of IPv4.
func linked(w *world) *cm.Manager {
	addr := netip.MustParseAddr
	n := &ways{host: w.hosts[0], hops: make([]netip.Addr, 3),
		nets: []netip.Prefix{netip.MustParsePrefix("fe80::/64"), netip.MustParsePrefix("fe80::/64"),
			netip.MustParsePrefix("10.2.0.1/24")}}
	return cm.New(cm.Config{Network: n, Addrs: []netip.Addr{addr("fe80::1"), addr("fe80::2"), addr("10.2.0.1")},
		Scopes: []uint32{3, 7}, Timeout: sec})
}

// TestScope: a link-local destination, or a group of the link, is on the link that the
// program names.
func TestScope(t *testing.T) {
	w := newWorld(t, 1, options{})
	m := linked(w)
	p := w.hosts[0].newProgram()
	for _, c := range []struct {
		src, dst string
		dev      int
		err      error
	}{
		{"::", "fe80::9%3", 0, nil}, {"::", "fe80::9%7", 1, nil}, {"fe80::2%7", "fe80::9", 1, nil},
		{"::", "fe80::9", 0, syscall.EINVAL}, {"::", "fe80::9%5", 0, syscall.ENODEV},
		{"fe80::2%7", "fe80::9%3", 0, syscall.EINVAL},
		{"::", "fe80::2%7", 1, nil}, {"::", "fe80::2%3", 0, syscall.ENODEV}, // docs/VERBS.md
		{"::", "ff02::9%3", 0, nil}, {"::", "ff02::9%7", 1, nil}, {"::", "ff02::9", 0, nil}, {"fe80::2%7", "ff02::9", 1, nil},
		{"::", "ff02::9%5", 0, syscall.ENODEV}, {"fe80::2", "ff02::9%3", 0, syscall.ENODEV}, {"0.0.0.0", "239.1.2.3", 2, nil},
	} {
		id := m.Create(p, p)
		err := m.ResolveAddr(id, netip.AddrPortFrom(netip.MustParseAddr(c.src), 0),
			netip.AddrPortFrom(netip.MustParseAddr(c.dst), 1), sec)
		if !errors.Is(err, c.err) {
			t.Errorf("%s to %s: %v, expected %v", c.src, c.dst, err, c.err)
		}
		if local, dev := id.Bound(); err == nil && (dev != c.dev || local.Addr().Zone() != "") {
			t.Errorf("%s to %s: from %v by device %d, expected %d", c.src, c.dst, local, dev, c.dev)
		}
	}
}

// TestScopeOfWildcard: the local host is that on every link.
func TestScopeOfWildcard(t *testing.T) {
	w := newWorld(t, 1, options{})
	m := linked(w)
	p := w.hosts[0].newProgram()
	id := m.Create(p, p)
	w.must(m.ResolveAddr(id, netip.MustParseAddrPort("[::]:0"), netip.MustParseAddrPort("[::%7]:1"), sec))
	if local, _ := id.Bound(); local.Addr() != netip.IPv6Loopback() {
		t.Errorf("bound to %v", local)
	}
}

// TestGroupOfNoFamily: no device has groups of this family.
func TestGroupOfNoFamily(t *testing.T) {
	w := newWorld(t, 1, options{})
	id := w.hosts[0].m.Create(nil, nil)
	to := netip.MustParseAddrPort("[ff15::1]:1")
	if err := w.hosts[0].m.ResolveAddr(id, netip.MustParseAddrPort("[::]:0"), to, sec); err != syscall.ENETUNREACH {
		t.Errorf("%v", err)
	}
}

// TestHoldersOfLinkLocal: Holders finds the owners that prevent binding to a link-local address, whether or
// not the address names its link.
func TestHoldersOfLinkLocal(t *testing.T) {
	w := newWorld(t, 1, options{})
	m := linked(w)
	p := w.hosts[0].newProgram()
	at := netip.MustParseAddrPort("[fe80::1%3]:7000")
	w.must(m.Bind(m.Create(p, p), at))
	late := m.Create(nil, nil)
	if err := m.Bind(late, at); err != syscall.EADDRINUSE {
		t.Fatal(err)
	}
	if got := m.Holders(late, at); len(got) != 1 {
		t.Errorf("held by %v", got)
	}
}
