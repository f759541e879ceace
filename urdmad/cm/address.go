package cm

import (
	"syscall"

	"urdma/urdmad/engine"
	"urdma/verbs/abi"
	"urdma/wire"
)

// Port numbers that Bind chooses (RFC 6335 section 6).
const (
	firstEphemeral = 49152
	lastEphemeral  = 65535
)

// Bind binds an id to one of our addresses, or to 0.0.0.0 for all. Port 0
// chooses a free port number.
func (m *Manager) Bind(id *ID, a abi.Addr) error {
	if id.state != idle {
		return einval
	}
	ip, err := a.IPv4()
	if err != nil {
		return err
	}
	dev, err := m.deviceOf(ip)
	if err != nil {
		return err
	}
	want := addr{ip, a.Port()}
	if want.port == 0 {
		p, ok := m.freePort(want.ip)
		if !ok {
			return syscall.EADDRNOTAVAIL
		}
		want.port = p
	} else if m.taken(want) {
		return syscall.EADDRINUSE
	}
	id.local, id.dev, id.state = want, dev, bound
	m.ports[want.port] = append(m.ports[want.port], id)
	return nil
}

// deviceOf returns the device that has an address of ours: -1 for 0.0.0.0.
func (m *Manager) deviceOf(ip wire.IPv4) (int, error) {
	if ip == (wire.IPv4{}) {
		return -1, nil
	}
	for i, d := range m.devices {
		if d.IP == ip {
			return i, nil
		}
	}
	if ip[0] == 127 && len(m.devices) > 0 {
		return 0, nil
	}
	return 0, syscall.ENODEV
}

func (m *Manager) taken(a addr) bool {
	for _, other := range m.ports[a.port] {
		if other.local.ip == a.ip || other.local.ip == (wire.IPv4{}) || a.ip == (wire.IPv4{}) {
			return true
		}
	}
	return false
}

func (m *Manager) freePort(ip wire.IPv4) (uint16, bool) {
	for range lastEphemeral - firstEphemeral + 1 {
		p := m.ephemeral
		if m.ephemeral++; m.ephemeral < firstEphemeral {
			m.ephemeral = firstEphemeral
		}
		if !m.taken(addr{ip, p}) && !m.carriesData(p) {
			return p, true
		}
	}
	return 0, false
}

// carriesData reports whether a connection uses a UDP port number: rdma_cm's
// numbers are UDP's.
func (m *Manager) carriesData(port uint16) bool {
	for dev := range m.devices {
		if m.e.ConnAt(dev, port) != nil {
			return true
		}
	}
	return false
}

func (m *Manager) unbind(id *ID) {
	list := m.ports[id.local.port]
	for i, other := range list {
		if other == id {
			list = append(list[:i], list[i+1:]...)
			break
		}
	}
	if len(list) == 0 {
		delete(m.ports, id.local.port)
	} else {
		m.ports[id.local.port] = list
	}
}

// ResolveAddr finds the device and the next hop towards dst; ADDR_RESOLVED or
// ADDR_ERROR follows. src may be zero.
func (m *Manager) ResolveAddr(id *ID, src, dst abi.Addr, timeout engine.Time) error {
	if id.state != idle && id.state != bound {
		return einval
	}
	ip, err := dst.IPv4()
	if err != nil {
		return err
	}
	from, err := src.IPv4()
	if err != nil {
		return err
	}
	to := addr{ip, dst.Port()}
	if to.ip == (wire.IPv4{}) {
		to.ip = wire.IPv4{127, 0, 0, 1} // as Linux takes it
	}
	dev, hop, local, err := m.route(id, from, to.ip)
	if err != nil {
		return err
	}
	if id.state == idle {
		if err := m.Bind(id, abi.AddrFrom4(local, src.Port())); err != nil {
			return err
		}
	}
	id.local.ip, id.dev, id.peer, id.state = local, dev, to, resolving
	if _, err := m.deviceOf(to.ip); err == nil {
		id.onHost = true
		m.soon(func() { m.addrResolved(id, wire.MAC{}, true) })
		return nil
	}
	if timeout > 0 {
		m.e.SetTimer(id.timer, m.e.Now()+timeout)
	}
	m.e.Resolve(dev, hop, func(mac wire.MAC, ok bool) {
		m.soon(func() { m.addrResolved(id, mac, ok) })
	})
	return nil
}

// route chooses the device, the next hop and our address for a destination.
func (m *Manager) route(id *ID, src, dst wire.IPv4) (dev int, hop, local wire.IPv4, err error) {
	want := -1
	if id.state == bound && id.dev >= 0 {
		want, src = id.dev, id.local.ip
	} else if src != (wire.IPv4{}) {
		if want, err = m.deviceOf(src); err != nil {
			return 0, hop, local, err
		}
	}
	if own, err := m.deviceOf(dst); err == nil {
		local = dst
		if src != (wire.IPv4{}) {
			local = src
		}
		if want >= 0 {
			own = want
		}
		return own, dst, local, nil
	}
	for i, d := range m.devices {
		if want >= 0 && want != i {
			continue
		}
		if hop, ok := m.e.NextHop(i, dst); ok {
			return i, hop, d.IP, nil
		}
	}
	return 0, hop, local, syscall.ENETUNREACH
}

func (m *Manager) addrResolved(id *ID, mac wire.MAC, ok bool) {
	if id.state != resolving || id.gone {
		return
	}
	m.e.SetTimer(id.timer, engine.Never)
	if !ok {
		m.addrError(id, syscall.EHOSTUNREACH)
		return
	}
	id.mac, id.state = mac, resolved
	m.event(id, abi.CMAddrResolved, 0, nil)
}

func (m *Manager) resolveTimeout(id *ID) { m.addrError(id, syscall.ETIMEDOUT) }

func (m *Manager) addrError(id *ID, why syscall.Errno) {
	id.state = bound
	m.event(id, abi.CMAddrError, -int32(why), nil)
}

// ResolveRoute answers at once: the address's next hop is the route.
func (m *Manager) ResolveRoute(id *ID) error {
	if id.state != resolved {
		return einval
	}
	id.state = routed
	m.soon(func() { m.event(id, abi.CMRouteResolved, 0, nil) })
	return nil
}
