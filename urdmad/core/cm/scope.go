package cm

import (
	"fmt"
	"net/netip"
	"strconv"
	"syscall"
)

// This file handles IPv6 link-local addresses, which a program gives with the index of an interface
// (sin6_scope_id of ipv6(7)). That is the interface below a device, Config.Scopes. Within a urdmad the
// device identifies the link, so addresses have no zone. Link-local groups (ff02::/16) are handled in the
// same way.

// links are the devices with their links.
type links struct {
	addrs  []netip.Addr // our addresses, by device number
	scopes []uint32
}

// scope limits devices to those on the link that a program has named; index 0 sets no limit.
type scope struct {
	of    *links
	index uint32
}

// has reports whether a device is on the link.
func (s scope) has(dev int) bool { return s.index == 0 || s.of.scopeOf(dev) == s.index }

func (m *links) scopeOf(dev int) uint32 {
	if dev < len(m.scopes) {
		return m.scopes[dev]
	}
	return 0
}

// unscope removes the zone from an address that a program gave. A zone is ignored if the address is not
// link-local. ENODEV: no device is on that link.
func (m *links) unscope(a netip.Addr) (netip.Addr, scope, error) {
	plain := a.WithZone("")
	if a.Zone() == "" || !a.IsLinkLocalUnicast() && !a.IsLinkLocalMulticast() {
		return plain, scope{}, nil
	}
	index, err := strconv.ParseUint(a.Zone(), 10, 32)
	if err != nil {
		return plain, scope{}, fmt.Errorf("cm: the address %v does not name its interface by number: %w", a, syscall.EINVAL)
	}
	on := scope{m, uint32(index)}
	for dev := range m.addrs {
		if on.has(dev) {
			return plain, on, nil
		}
	}
	return plain, on, syscall.ENODEV
}

// either returns the link that one of two addresses names; EINVAL if they name different links.
func (s scope) either(o scope) (scope, error) {
	switch {
	case s.index == 0:
		return o, nil
	case o.index != 0 && o.index != s.index:
		return s, fmt.Errorf("cm: the addresses name two interfaces, %d and %d: %w", s.index, o.index, syscall.EINVAL)
	}
	return s, nil
}

// ambiguous reports whether several devices have link-local addresses, dst is one too, and the program has
// named no link.
func (m *links) ambiguous(on scope, dst netip.Addr) bool {
	links := 0
	for _, own := range m.addrs {
		if own.Is6() && own.IsLinkLocalUnicast() {
			links++
		}
	}
	return links > 1 && on.index == 0 && dst.Is6() && dst.IsLinkLocalUnicast()
}
