package cmid

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
)

// LookUp reads "host:port". Of a name's addresses it returns the first whose family one of our ports has. An
// empty host is IPv4's wildcard.
func LookUp(ctx context.Context, address string, ours []netip.Addr) (netip.AddrPort, error) {
	host, service, err := net.SplitHostPort(address)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("verbs: %w", err)
	}
	port, err := strconv.ParseUint(service, 10, 16)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("verbs: port %q: expected a number up to 65535", service)
	}
	if host == "" {
		return netip.AddrPortFrom(netip.IPv4Unspecified(), uint16(port)), nil
	}
	a, err := netip.ParseAddr(host) // parsed here because the resolver drops zones and returns 0.0.0.0, too, for ::
	if err != nil {
		found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		if err != nil {
			return netip.AddrPort{}, fmt.Errorf("verbs: %w", err)
		}
		a = choose(found, ours)
	}
	a, err = numberedZone(a.Unmap())
	return netip.AddrPortFrom(a, uint16(port)), err
}

// choose returns one of a name's addresses, which must not be empty: the first with a family that one of our
// ports has, else the first IPv4 one, else the first.
func choose(found, ours []netip.Addr) netip.Addr {
	four := slices.IndexFunc(found, func(a netip.Addr) bool { return a.Unmap().Is4() })
	for _, a := range found {
		if slices.ContainsFunc(ours, func(our netip.Addr) bool { return our.Is4() == a.Unmap().Is4() }) {
			return a.Unmap()
		}
	}
	return found[max(four, 0)].Unmap()
}

// numberedZone replaces an interface's name in the zone by its index.
func numberedZone(a netip.Addr) (netip.Addr, error) {
	if _, err := strconv.ParseUint(a.Zone(), 10, 32); a.Zone() == "" || err == nil {
		return a, nil
	}
	i, err := net.InterfaceByName(a.Zone())
	if err != nil {
		return a, fmt.Errorf("verbs: %s: %w", a, err)
	}
	return a.WithZone(strconv.Itoa(i.Index)), nil
}
