package cm_test

import (
	"errors"
	"net/netip"
	"syscall"
	"testing"

	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/cm"
)

// TestLoopbackIsEveryAddress: an id that is bound to a loopback address has no
// device, and its listener hears requests for every address of ours.
func TestLoopbackIsEveryAddress(t *testing.T) {
	for _, local := range []string{"127.0.0.1:7100", "127.9.9.9:7100", "[::1]:7100", "[::]:7100"} {
		w := newWorld(t, 1, options{}, options{})
		p := w.hosts[1].newProgram()
		l := p.newEnd()
		w.must(p.h.m.Bind(l.id, netip.MustParseAddrPort(local)))
		if _, dev := l.id.Bound(); dev != -1 {
			t.Errorf("%s has device %d", local, dev)
		}
		w.must(p.h.m.Listen(l.id, 1))
		p.onRequest = func(e *end) { e.accept(&cm.Param{}) }
		for _, from := range w.hosts {
			e := from.newProgram().newEnd()
			e.connect(w.hosts[1].at(7100), &cm.Param{})
			w.until(local, sec, func() bool { return e.event(cm.EventEstablished) != nil })
		}
	}
}

// TestLoopbackAsSource: an id that is bound to a loopback address reaches other
// hosts all the same, from a real address.
func TestLoopbackAsSource(t *testing.T) {
	w := newWorld(t, 1, options{}, options{})
	e := w.hosts[0].newProgram().newEnd()
	w.must(w.hosts[0].m.Bind(e.id, netip.MustParseAddrPort("127.0.0.1:7101")))
	w.must(w.hosts[0].m.ResolveAddr(e.id, anywhere, w.hosts[1].at(7000), sec))
	w.until("resolved address", sec, func() bool { return e.event(cm.EventAddrResolved) != nil })
	if local, dev := e.id.Bound(); local != w.hosts[0].at(7101) || dev != 0 {
		t.Errorf("resolved to %v, device %d", local, dev)
	}
}

// option sets an option of a new id.
func (h *host) option(o cm.Option, value uint32) *cm.ID {
	id := h.m.Create(nil, nil)
	h.w.must(h.m.SetOption(id, o, value))
	return id
}

// TestIPv6Alone: an IPv6-only wildcard can be bound in addition to the IPv4 wildcard, and gets no IPv4
// requests; without the option the wildcard is for both families.
func TestIPv6Alone(t *testing.T) {
	w := newWorld(t, 1, options{}, options{})
	h := w.hosts[0]
	six, four := netip.MustParseAddrPort("[::]:7200"), netip.MustParseAddrPort("0.0.0.0:7200")
	alone := h.option(cm.OptionAFOnly, 1)
	w.must(h.m.Bind(alone, six))
	w.must(h.m.Listen(alone, 1))
	if local, dev := alone.Bound(); local != six || dev != -1 {
		t.Errorf("bound to %v, device %d", local, dev)
	}
	e := w.hosts[1].newProgram().newEnd()
	e.connect(h.at(7200), &cm.Param{})
	w.until("reject", sec, func() bool { return e.event(cm.EventRejected) != nil })
	w.must(h.m.Bind(h.m.Create(nil, nil), four))
	if err := h.m.Bind(h.option(cm.OptionAFOnly, 1), six); err != syscall.EADDRINUSE {
		t.Errorf("a second one: %v", err)
	}
	if err := h.m.SetOption(alone, cm.OptionAFOnly, 0); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("set while listening: %v", err)
	}
}

// TestReuseAddr: ids that may reuse an address share it, and one of them listens
// once it is alone.
func TestReuseAddr(t *testing.T) {
	w := newWorld(t, 1, options{})
	h := w.hosts[0]
	a, b := h.option(cm.OptionReuseAddr, 1), h.option(cm.OptionReuseAddr, 1)
	w.must(h.m.Bind(a, h.at(7300)))
	if err := h.m.Bind(h.m.Create(nil, nil), h.at(7300)); err != syscall.EADDRINUSE {
		t.Errorf("one that may not: %v", err)
	}
	w.must(h.m.Bind(b, h.at(7300)))
	if err := h.m.Listen(a, 1); err != syscall.EADDRINUSE {
		t.Errorf("listening beside another: %v", err)
	}
	if err := h.m.SetOption(b, cm.OptionReuseAddr, 0); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("taken back when bound: %v", err)
	}
	h.m.Destroy(b)
	w.must(h.m.Listen(a, 1))
	if err := h.m.SetOption(a, cm.OptionReuseAddr, 1); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("set while listening: %v", err)
	}
	if err := h.m.Bind(h.option(cm.OptionReuseAddr, 1), h.at(7300)); err != syscall.EADDRINUSE {
		t.Errorf("beside a listener: %v", err)
	}
}

func TestOptionErrors(t *testing.T) {
	h := newWorld(t, 1, options{}).hosts[0]
	id := h.m.Create(nil, nil)
	for _, c := range []struct {
		o     cm.Option
		value uint32
		want  error
	}{{cm.OptionTOS, 255, nil}, {cm.OptionAckTimeout, 31, nil}, {cm.OptionAckTimeout, 32, syscall.EINVAL},
		{4, 1, syscall.ENOSYS}} {
		if err := h.m.SetOption(id, c.o, c.value); !errors.Is(err, c.want) {
			t.Errorf("option %d to %d: %v", c.o, c.value, err)
		}
	}
}

// TestTimewaitExit comes to a side that has disconnected, a packet's life time
// after the connection's end, and to no other.
func TestTimewaitExit(t *testing.T) {
	bothWays(t, func(t *testing.T, sameHost bool) {
		for ackTimeout, life := range map[uint32]clock.Time{0: 1073741824, 8: 4096 << 8} {
			p := newPair(t, sameHost, 1, options{})
			if ackTimeout != 0 {
				p.must(p.from.m.SetOption(p.active.id, cm.OptionAckTimeout, ackTimeout))
			}
			p.connect()
			b := p.requested(1, sec)
			b.accept(&cm.Param{})
			p.hears(p.active, cm.EventEstablished, sec)
			p.hears(b, cm.EventEstablished, sec)
			p.must(p.from.m.Disconnect(p.active.id))
			p.hears(p.active, cm.EventDisconnected, 2*sec)
			at := p.now
			p.hears(p.active, cm.EventTimewaitExit, 2*sec)
			if p.now-at != life {
				t.Errorf("it came after %d ns, expected %d", p.now-at, life)
			}
			p.pass(3 * sec)
			if b.heard() != "ESTABLISHED DISCONNECTED" {
				t.Errorf("the side that has not disconnected heard %q", b.heard())
			}
			p.must(p.to.m.Disconnect(b.id))
			p.hears(b, cm.EventTimewaitExit, 2*sec)
			p.must(p.to.m.Disconnect(b.id))
			p.pass(3 * sec)
			if b.heard() != "ESTABLISHED DISCONNECTED TIMEWAIT_EXIT" {
				t.Errorf("heard %q", b.heard())
			}
			p.active.destroy()
			b.destroy()
			p.listener.destroy()
			p.pass(5 * sec)
			p.checkEmpty()
		}
	})
}

// TestSharedNumberIsBounded: ids of all clients could share a port number, by
// RDMA_OPTION_ID_REUSEADDR. Each request for the number, and each bind, looks at all of them in
// one turn.
func TestSharedNumberIsBounded(t *testing.T) {
	h := newWorld(t, 1, options{}).hosts[0]
	var last *cm.ID
	for range cm.MaxSharing {
		last = h.option(cm.OptionReuseAddr, 1)
		h.w.must(h.m.Bind(last, h.at(7400)))
	}
	if err := h.m.Bind(h.option(cm.OptionReuseAddr, 1), h.at(7400)); err != syscall.EADDRINUSE {
		t.Errorf("one more: %v", err)
	}
	h.m.Destroy(last)
	h.w.must(h.m.Bind(h.option(cm.OptionReuseAddr, 1), h.at(7400)))
}
