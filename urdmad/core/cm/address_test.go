package cm_test

import (
	"errors"
	"net/netip"
	"syscall"
	"testing"

	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/cm"
)

// TestResolveAgain: an answer that arrives after its resolution timed out does not count as the answer to a
// later one.
func TestResolveAgain(t *testing.T) {
	w := newWorld(t, 1, options{}, options{}, options{})
	a, b, c := w.hosts[0], w.hosts[1], w.hosts[2]
	a.slow = map[netip.Addr]clock.Time{b.addr: 300 * ms, c.addr: 400 * ms}
	e := a.newProgram().newEnd()
	w.must(a.m.ResolveAddr(e.id, anywhere, b.at(7000), 200*ms))
	w.until("time-out", sec, func() bool { return e.event(cm.EventAddrError) != nil })
	if err := e.events[0].Err; err != syscall.ETIMEDOUT || w.now != 200*ms {
		t.Errorf("%v after %d ms", err, w.now/ms)
	}
	l := c.newProgram().listen(7000, 1)
	e.connect(c.at(7000), &cm.Param{})
	w.until("resolved address", sec, func() bool { return e.event(cm.EventAddrResolved) != nil })
	if w.now < 600*ms {
		t.Errorf("resolved after %d ms, when another address was", w.now/ms)
	}
	w.until("request", sec, func() bool { return len(l.p.ends) == 2 })
}

// TestResolveAgainAfterFailure: nor is its failure.
func TestResolveAgainAfterFailure(t *testing.T) {
	w := newWorld(t, 1, options{}, options{})
	a, b := w.hosts[0], w.hosts[1]
	a.slow = map[netip.Addr]clock.Time{b.addr: resolveTime}
	e := a.newProgram().newEnd()
	nobody := netip.MustParseAddrPort("10.0.0.99:1")
	w.must(a.m.ResolveAddr(e.id, anywhere, nobody, 500*ms))
	w.until("time-out", sec, func() bool { return e.heard() == "ADDR_ERROR" })
	w.must(a.m.ResolveAddr(e.id, anywhere, b.at(1), 0))
	w.pass(3 * sec)
	if e.heard() != "ADDR_ERROR ADDR_RESOLVED" {
		t.Errorf("heard %q", e.heard())
	}
}

func TestBindErrors(t *testing.T) {
	w := newWorld(t, 1, options{})
	for i, s := range []struct {
		to   string
		want error
	}{
		{"10.0.0.1:7000", nil}, {"10.0.0.1:7000", syscall.EADDRINUSE}, {"0.0.0.0:7000", syscall.EADDRINUSE},
		{"127.0.0.1:7000", syscall.EADDRINUSE}, {"127.0.0.1:7002", nil}, {"10.0.0.1:7002", syscall.EADDRINUSE},
		{"9.9.9.9:7000", syscall.ENODEV}, {"[2001:db8::1]:7000", syscall.ENODEV},
		{"0.0.0.0:7001", nil}, {"10.0.0.1:7001", syscall.EADDRINUSE}, {"0.0.0.0:0", nil}, {"10.0.0.1:0", nil},
		{"[::]:7000", syscall.EADDRINUSE}, {"[::]:7003", nil}, {"10.0.0.1:7003", syscall.EADDRINUSE},
		{"[::1]:7003", syscall.EADDRINUSE},
	} {
		to := netip.MustParseAddrPort(s.to)
		id := w.hosts[0].m.Create(nil, nil)
		if err := w.hosts[0].m.Bind(id, to); !errors.Is(err, s.want) {
			t.Errorf("step %d: bind to %v: %v, expected %v", i, to, err, s.want)
		}
		if local, _ := id.Bound(); s.want == nil && (local.Addr() != to.Addr() || local.Port() == 0) {
			t.Errorf("step %d: bound to %v", i, local)
		}
	}
}

// TestFreePorts: Bind chooses every ephemeral port number once, except those of connections, and then
// returns an error.
func TestFreePorts(t *testing.T) {
	w := newWorld(t, 1, options{})
	h := w.hosts[0]
	seen := map[uint16]bool{}
	for _, port := range []uint16{49152, 49160, 65535} {
		if _, err := h.Open(nil, 0, port, anywhere); err != nil {
			t.Fatal(err)
		}
		seen[port] = true
	}
	for len(seen) < 65536-49152 {
		id := h.m.Create(nil, nil)
		w.must(h.m.Bind(id, h.at(0)))
		local, _ := id.Bound()
		if seen[local.Port()] || local.Port() < 49152 {
			t.Fatalf("bound to %v", local)
		}
		seen[local.Port()] = true
	}
	if err := h.m.Bind(h.m.Create(nil, nil), h.at(0)); err != syscall.EADDRNOTAVAIL {
		t.Errorf("one more: %v", err)
	}
}

// TestWrongState: calls in the wrong order are EINVAL and change nothing.
func TestWrongState(t *testing.T) {
	p := newPair(t, false, 1, options{})
	m := p.from.m
	calls := map[string]func(*end) error{
		"bind":          func(e *end) error { return m.Bind(e.id, anywhere) },
		"resolve":       func(e *end) error { return m.ResolveAddr(e.id, anywhere, p.to.at(served), sec) },
		"resolve route": func(e *end) error { return m.ResolveRoute(e.id) },
		"listen":        func(e *end) error { return m.Listen(e.id, 1) },
		"connect":       func(e *end) error { return m.Connect(e.id, p.from.newQP(), &cm.Param{}) },
		"connect nil":   func(e *end) error { return m.Connect(e.id, nil, &cm.Param{}) },
		"accept":        func(e *end) error { return m.Accept(e.id, p.from.newQP(), &cm.Param{}) },
		"reject":        func(e *end) error { return m.Reject(e.id, nil) },
		"disconnect":    func(e *end) error { return m.Disconnect(e.id) },
	}
	refuses := func(state string, e *end, names ...string) {
		t.Helper()
		for _, name := range names {
			if err := calls[name](e); !errors.Is(err, syscall.EINVAL) {
				t.Errorf("%s in state %s: %v", name, state, err)
			}
		}
		if got := e.id.View().State; got != state {
			t.Errorf("the state is %s, expected %s", got, state)
		}
	}
	refuses("idle", p.active, "resolve route", "connect", "connect nil", "accept", "reject", "disconnect")
	l := p.from.newProgram().listen(served, 1)
	refuses("listening", l, "bind", "resolve", "resolve route", "listen", "connect", "accept", "reject", "disconnect")
	p.connect()
	refuses("resolving", p.active, "bind", "resolve", "resolve route", "listen", "connect", "accept", "reject",
		"disconnect")
	p.requested(1, sec)
	refuses("connecting", p.active, "bind", "resolve", "resolve route", "listen", "connect", "accept", "reject",
		"disconnect")
	p.requests[0].accept(&cm.Param{})
	p.hears(p.active, cm.EventEstablished, sec)
	refuses("connected", p.active, "bind", "resolve", "resolve route", "listen", "connect", "accept", "reject")
}

// ways is a host with several devices, each of which knows a next hop for some
// destination, or for all.
type ways struct {
	*host
	hops []netip.Addr // by device: the zero value is the destination itself
	nets []netip.Prefix
}

func (w *ways) Home(int) cm.Link { return nil }

func (w *ways) NextHop(dev int, dst netip.Addr) (netip.Addr, bool) {
	if w.nets[dev].Contains(dst) {
		return dst, true
	}
	return w.hops[dev], w.hops[dev].IsValid()
}

// TestRouteOnTheLinkFirst: a device with a default route that is listed first is not used for addresses on
// another device's link.
func TestRouteOnTheLinkFirst(t *testing.T) {
	w := newWorld(t, 1, options{})
	addr := netip.MustParseAddr
	n := &ways{host: w.hosts[0], hops: []netip.Addr{addr("10.1.0.1"), {}, addr("10.3.0.9")},
		nets: []netip.Prefix{netip.MustParsePrefix("10.1.0.1/24"), netip.MustParsePrefix("10.2.0.1/24"),
			netip.MustParsePrefix("10.3.0.1/24")}}
	m := cm.New(cm.Config{Network: n, Addrs: []netip.Addr{addr("10.1.0.1"), addr("10.2.0.1"), addr("10.3.0.1")},
		Timeout: sec})
	p := w.hosts[0].newProgram()
	for dst, want := range map[string]int{"10.1.0.7": 0, "10.2.0.7": 1, "10.3.0.7": 2, "192.0.2.1": 0} {
		id := m.Create(p, p)
		if err := m.ResolveAddr(id, anywhere, netip.AddrPortFrom(addr(dst), 1), sec); err != nil {
			t.Fatal(err)
		}
		if _, dev := id.Bound(); dev != want {
			t.Errorf("%s by device %d, expected %d", dst, dev, want)
		}
	}
	if err := m.ResolveAddr(m.Create(p, p), netip.MustParseAddrPort("10.2.0.1:0"), netip.MustParseAddrPort("192.0.2.1:1"),
		sec); err != syscall.ENETUNREACH {
		t.Errorf("from a device without a way: %v", err)
	}
}

// TestResolveAcrossFamilies: from a loopback address there is no way to one of the other
// family, on this host or another.
func TestResolveAcrossFamilies(t *testing.T) {
	w := newWorld(t, 1, options{})
	n := &ways{host: w.hosts[0], hops: make([]netip.Addr, 2),
		nets: []netip.Prefix{netip.MustParsePrefix("10.1.0.1/24"), netip.MustParsePrefix("fd01::1/64")}}
	m := cm.New(cm.Config{Network: n, Addrs: []netip.Addr{netip.MustParseAddr("10.1.0.1"), netip.MustParseAddr("fd01::1")},
		Timeout: sec})
	p := w.hosts[0].newProgram()
	for _, way := range []struct {
		src, dst string
		want     error
	}{{"::1", "10.1.0.1", syscall.EINVAL}, {"::1", "10.1.0.2", syscall.EINVAL}, {"::1", "127.0.0.1", syscall.EINVAL},
		{"127.0.0.1", "fd01::1", syscall.EINVAL},
		{"127.0.0.1", "fd01::2", syscall.EINVAL}, {"127.0.0.1", "::1", syscall.EINVAL}, {"::1", "fd01::1", nil},
		{"::1", "::1", nil}, {"127.0.0.1", "10.1.0.1", nil},
		{"::", "10.1.0.1", nil}, {"0.0.0.0", "fd01::1", nil}} {
		src, dst := netip.AddrPortFrom(netip.MustParseAddr(way.src), 0),
			netip.AddrPortFrom(netip.MustParseAddr(way.dst), 7471)
		if err := m.ResolveAddr(m.Create(p, p), src, dst, sec); !errors.Is(err, way.want) {
			t.Errorf("%s to %s: %v, expected %v", way.src, way.dst, err, way.want)
		}
	}
}
