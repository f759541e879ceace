package main

import (
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"

	"urdma/config"
	"urdma/dpdk/port"
)

// anyHost and anyHost6 stand for hosts beyond the default gateway: addresses for
// documentation (RFC 5737, RFC 3849), to which nothing is sent.
const (
	anyHost  = "192.0.2.1:9"
	anyHost6 = "[2001:db8::1]:9"
)

// placePorts gives udp ports without an address the one that the kernel would
// choose.
func placePorts(cfg *config.Config) error {
	for i := range cfg.Ports {
		p := &cfg.Ports[i]
		if !p.UDP() || !p.Address.Addr().IsUnspecified() {
			continue
		}
		a, err := chosenAddress(p.Address.Addr().Is4())
		if err != nil {
			return fmt.Errorf("ports[%d].%s: %s needs a default route (%w); expected an address that \"ip address\" shows",
				i, p.AddressSetting(), p.Address.Addr(), err)
		}
		p.Address = netip.PrefixFrom(a, p.Address.Bits())
	}
	return nil
}

// chosenAddress is the address from which the kernel would send to hosts that it
// has no other route for.
func chosenAddress(v4 bool) (netip.Addr, error) {
	network, host, d := "udp6", anyHost6, net.Dialer{Control: preferPublic}
	if v4 {
		network, host, d = "udp4", anyHost, net.Dialer{}
	}
	c, err := d.Dial(network, host)
	if err != nil {
		return netip.Addr{}, err
	}
	defer c.Close()
	return c.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap(), nil
}

// preferSrcPublic is IPV6_PREFER_SRC_PUBLIC (RFC 5014).
const preferSrcPublic = 2

// preferPublic is a net.Dialer's Control. A temporary address is what the kernel takes
// where it has some (use_tempaddr 2), and drops within days (RFC 8981).
func preferPublic(_, _ string, c syscall.RawConn) error {
	return c.Control(func(fd uintptr) {
		// A sandbox without the option has no temporary addresses either.
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_ADDR_PREFERENCES, preferSrcPublic)
	})
}

// scopeOf is the index of the interface below a port, 0 where there is none: what
// programs name its link by beside a link-local address.
func scopeOf(info port.Info) uint32 {
	i, err := net.InterfaceByName(info.Interface)
	if err != nil {
		return 0
	}
	return uint32(i.Index)
}

// socketPort is the UDP port number of a udp port, 0 of any other.
func socketPort(p *config.Port) uint16 {
	v, _ := config.ParseVdev(p.Vdev)
	return v.Port
}
