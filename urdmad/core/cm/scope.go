package cm

import (
	"fmt"
	"net/netip"
	"strconv"
	"syscall"
)

// This file has link-local addresses of IPv6, which a program gives with the index of
// the interface whose link it means (sin6_scope_id of ipv6(7)): that is the interface
// below a device, Config.Scopes. Within an urdmad the device says the link, so that
// addresses have no zone. Groups of the link (ff02::/16) are given likewise.

// links are the devices by their links.
type links struct {
	addrs  []netip.Addr // ours, by device number
	scopes []uint32
}

// scope limits devices to those on the link that a program has named; of 0 to none.
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

// unscope takes the zone off an address that a program gave. That of an address that
// is not link-local means nothing. ENODEV: no device is on that link.
func (m *links) unscope(a netip.Addr) (netip.Addr, scope, error) {
	plain := a.WithZone("")
	if a.Zone() == "" || !a.IsLinkLocalUnicast() && !a.IsLinkLocalMulticast() {
		return plain, scope{}, nil
	}
	index, err := strconv.ParseUint(a.Zone(), 10, 32)
	if err != nil {
		return plain, scope{}, fmt.Errorf("cm: the address %v does not name its interface by number: %w", a, einval)
	}
	on := scope{m, uint32(index)}
	for dev := range m.addrs {
		if on.has(dev) {
			return plain, on, nil
		}
	}
	return plain, on, syscall.ENODEV
}

// either is the link that one of two addresses names; EINVAL if they name two.
func (s scope) either(o scope) (scope, error) {
	switch {
	case s.index == 0:
		return o, nil
	case o.index != 0 && o.index != s.index:
		return s, fmt.Errorf("cm: the addresses name two interfaces, %d and %d: %w", s.index, o.index, einval)
	}
	return s, nil
}

// ambiguous reports whether several devices have links with an address like dst, and
// the program has named none.
func (m *links) ambiguous(on scope, dst netip.Addr) bool {
	links := 0
	for _, own := range m.addrs {
		if own.Is6() && own.IsLinkLocalUnicast() {
			links++
		}
	}
	return links > 1 && on.index == 0 && dst.Is6() && dst.IsLinkLocalUnicast()
}
