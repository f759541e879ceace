package cm

import (
	"fmt"
	"net/netip"
	"syscall"

	"urdma/urdmad/core/clock"
)

// Bind binds an id to one of our addresses, or to all. Port 0 chooses a free port number. As with the
// kernel's rdma_cm, a loopback address also means all addresses: no device has it, and programs advertise
// the address of the device over which they are reached. :: means all addresses of both families, or only
// all IPv6 addresses if OptionAFOnly is set.
func (m *Manager) Bind(id *ID, a netip.AddrPort) error {
	if err := id.in(idle); err != nil {
		return err
	}
	ip, on, err := m.links.unscope(a.Addr())
	if err != nil {
		return err
	}
	dev, err := m.deviceOf(ip)
	if err != nil {
		return err
	}
	if dev >= 0 && !on.has(dev) {
		return syscall.ENODEV
	}
	a = netip.AddrPortFrom(ip, a.Port())
	id.dev = dev
	if a.Port() == 0 {
		err = m.choose(id, a.Addr())
	} else if id.local = a; m.numbers.taken(id, a, id.options.reuseAddr) {
		err = syscall.EADDRINUSE
	} else {
		err = m.openSockets(id)
	}
	if err == nil && !m.numbers.add(id) {
		m.closeSockets(id)
		err = syscall.EADDRINUSE
	}
	if err != nil {
		id.binding = binding{dev: -1}
		return err
	}
	id.state, id.boundAt = bound, m.net.Now()
	return nil
}

// choose gives an id a free port number at an address.
func (m *Manager) choose(id *ID, a netip.Addr) error {
	for range lastEphemeral - firstEphemeral + 1 {
		p, ok := m.numbers.free(id, a)
		if !ok {
			break
		}
		id.local = netip.AddrPortFrom(a, p)
		if err := m.openSockets(id); err != syscall.EADDRINUSE { // EADDRINUSE: another program's socket has the number
			return err
		}
	}
	return syscall.EADDRNOTAVAIL
}

// Holders returns the owners of the ids that prevent id from being bound to a.
func (m *Manager) Holders(id *ID, a netip.AddrPort) (owners []Owner) {
	ip := a.Addr().WithZone("") // addresses of ids have no zone
	for _, other := range m.numbers.ids[a.Port()] {
		if id.conflicts(other, ip, id.options.reuseAddr) {
			owners = append(owners, other.Owner)
		}
	}
	return owners
}

// FreePort returns an unused port number of device dev.
func (m *Manager) FreePort(dev int) (uint16, bool) { return m.numbers.free(nil, m.addrs[dev]) }

// Bound returns the local address of an id; dev is -1 for any.
func (id *ID) Bound() (local netip.AddrPort, dev int) { return id.local, id.dev }

// isAny reports whether an address means all of ours.
func isAny(a netip.Addr) bool { return a.IsUnspecified() || a.IsLoopback() }

// deviceOf returns the device that has one of our addresses: -1 for all of them.
func (m *Manager) deviceOf(a netip.Addr) (int, error) {
	if isAny(a) {
		return -1, nil
	}
	for dev, own := range m.addrs {
		if own == a {
			return dev, nil
		}
	}
	return 0, syscall.ENODEV
}

// ResolveAddr finds the device and the next hop for dst; ADDR_RESOLVED or ADDR_ERROR follows. src may be
// 0.0.0.0; a timeout of 0 means none.
func (m *Manager) ResolveAddr(id *ID, src, dst netip.AddrPort, timeout clock.Time) error {
	if err := id.in(idle, bound); err != nil {
		return err
	}
	r, err := m.route(id, src.Addr(), localHost(dst.Addr()))
	if err != nil {
		return err
	}
	dst = netip.AddrPortFrom(r.peer, dst.Port())
	if id.state == idle {
		if err := m.Bind(id, netip.AddrPortFrom(r.local, src.Port())); err != nil {
			return err
		}
	}
	m.closeSockets(id) // it will not listen
	id.local = netip.AddrPortFrom(r.local, id.local.Port())
	id.dev, id.peer, id.sameHost, id.state = r.dev, dst, r.sameHost, resolving
	if r.sameHost {
		m.net.Soon(func() { m.addrResolved(id, nil, true) })
		return nil
	}
	if timeout > 0 {
		m.net.Set(id.timer, m.net.Now()+timeout)
	}
	id.resolves++
	asked := id.resolves
	m.net.Resolve(r.dev, r.hop, r.peer, func(l Link, ok bool) {
		if asked == id.resolves { // otherwise the resolution has timed out
			m.net.Soon(func() { m.addrResolved(id, l, ok) })
		}
	})
	return nil
}

// localHost returns the destination, or the local host for the wildcard address, as Linux does.
func localHost(dst netip.Addr) netip.Addr {
	switch dst.WithZone("") {
	case netip.IPv4Unspecified():
		return netip.AddrFrom4([4]byte{127, 0, 0, 1})
	case netip.IPv6Unspecified():
		return netip.IPv6Loopback()
	}
	return dst
}

// route is the path to a destination.
type route struct {
	dev      int
	peer     netip.Addr // the destination
	local    netip.Addr // our address
	hop      netip.Addr // the next hop, unless sameHost
	sameHost bool
}

// route chooses the device, the next hop and our address for a destination. The device is that of the id if
// it is bound to an address, and that of src. A device on the destination's link is preferred to one with
// only a gateway.
func (m *Manager) route(id *ID, src, dst netip.Addr) (r route, err error) {
	src, from, err := m.links.unscope(src)
	if err != nil {
		return r, err
	}
	dst, to, err := m.links.unscope(dst)
	if err != nil {
		return r, err
	}
	on, err := to.either(from)
	if err != nil {
		return r, err
	}
	only := -1
	if id.state == bound && id.dev >= 0 {
		only, src = id.dev, id.local.Addr()
	} else if only, err = m.deviceOf(src); err != nil {
		return r, err
	}
	if (only >= 0 && !isAny(dst) || src.IsLoopback()) && src.Is4() != dst.Is4() {
		return r, fmt.Errorf("cm: the source %v is of another address family than %v: %w", src, dst, einval)
	}
	if dst.IsMulticast() { // no resolution: members join and leave
		r, err = m.routeGroup(only, on, src, dst)
	} else if own, no := m.deviceOf(dst); no == nil {
		r, err = m.routeHome(own, only, src, dst)
	} else {
		r, err = m.routeAway(only, on, dst)
	}
	r.peer = dst
	if err == nil && !on.has(r.dev) {
		err = syscall.ENODEV
	}
	return r, err
}

// routeGroup returns the route to a group: through the device of src, or the first device of the group's
// address family on the link that the program has named.
func (m *Manager) routeGroup(only int, on scope, src, dst netip.Addr) (route, error) {
	for dev, own := range m.addrs {
		if only < 0 && own.Is4() == dst.Is4() && on.has(dev) {
			only = dev
		}
	}
	if only < 0 {
		return route{}, syscall.ENETUNREACH
	}
	r, err := m.routeHome(-1, only, src, dst)
	if err == nil {
		r.local = m.addrs[r.dev]
	}
	return r, err
}

// routeAway returns the route to another host.
func (m *Manager) routeAway(only int, on scope, dst netip.Addr) (r route, err error) {
	if only < 0 && m.links.ambiguous(on, dst) {
		return r, fmt.Errorf("cm: several devices have links with addresses like %v, and the address names none by %%INTERFACE: %w", dst, einval)
	}
	err = syscall.ENETUNREACH
	for dev, own := range m.addrs {
		hop, ok := m.net.NextHop(dev, dst)
		if !ok || only >= 0 && only != dev || !on.has(dev) {
			continue
		}
		if hop == dst {
			return route{dev: dev, local: own, hop: hop}, nil
		}
		if err != nil { // the first device with a default route
			r, err = route{dev: dev, local: own, hop: hop}, nil
		}
	}
	return r, err
}

// routeHome returns the route to ourselves: dst is the address of device own, or a loopback address, which
// belongs to the first device; only is the device of src.
func (m *Manager) routeHome(own, only int, src, dst netip.Addr) (route, error) {
	r := route{dev: max(own, 0), local: dst, sameHost: true}
	if only >= 0 {
		r.dev = only
	}
	if !src.IsUnspecified() {
		r.local = src
	}
	if r.dev >= len(m.addrs) {
		return r, syscall.ENODEV
	}
	return r, nil
}

func (m *Manager) addrResolved(id *ID, l Link, ok bool) {
	if id.state != resolving {
		return
	}
	m.net.Set(id.timer, clock.Never)
	if !ok {
		m.addrError(id, syscall.ETIMEDOUT) // as the kernel says it, before or after the caller's time limit
		return
	}
	id.terms.Link, id.state = l, resolved
	m.deliver(id, Event{Kind: EventAddrResolved})
}

func (m *Manager) addrError(id *ID, why syscall.Errno) {
	id.state = bound
	m.deliver(id, Event{Kind: EventAddrError, Err: why})
}

// ResolveRoute succeeds at once: the next hop of the address is the route.
func (m *Manager) ResolveRoute(id *ID) error {
	if err := id.in(resolved); err != nil {
		return err
	}
	id.state = routed
	m.net.Soon(func() { m.deliver(id, Event{Kind: EventRouteResolved}) })
	return nil
}
