package serve

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"

	"urdma/config"
	"urdma/dpdk/port"
	"urdma/urdmad/control/account"
)

// anyHost and anyHost6 stand for hosts beyond the default gateway: addresses for
// documentation (RFC 5737, RFC 3849), to which nothing is sent.
const (
	// anyHost and anyHost6 stand for hosts beyond the default gateway. They are documentation
	// addresses (RFC 5737, RFC 3849); nothing is sent to them.
	anyHost  = "192.0.2.1:9"
	anyHost6 = "[2001:db8::1]:9"
)

// placePorts sets the address of ports over kernel sockets that have none, to the address that
// the kernel would choose.
func placePorts(cfg *config.Config) error {
	for i := range cfg.Ports {
		p := &cfg.Ports[i]
		if !p.UDP() || !p.Address.Addr().IsUnspecified() {
			continue
		}
		a, err := chosenAddress(p.Address.Addr().Is4())
		if err != nil {
			return fmt.Errorf("ports[%d].%s: %w; expected, in a file for --config: { \"ports\": [ { \"vdev\": %q, %q: \"ADDRESS\" } ] }",
				i, p.AddressSetting(), err, p.Vdev, p.AddressSetting())
		}
		p.Address = netip.PrefixFrom(a, p.Address.Bits())
	}
	return nil
}

// chosenAddress returns the address from which the kernel would send to hosts without a more
// specific route. Without a default route it is the machine's only address.
func chosenAddress(v4 bool) (netip.Addr, error) {
	a, err := outward(v4)
	if err == nil {
		return a, nil
	}
	all, bad := addresses(v4)
	if bad == nil && len(all) == 1 {
		return all[0], nil
	}
	return a, fmt.Errorf("there is no default route (%w), and the addresses of this machine are %v", err, all)
}

// addresses returns the addresses of one family through which other hosts may reach this machine.
func addresses(v4 bool) (all []netip.Addr, err error) {
	given, err := net.InterfaceAddrs()
	for _, g := range given {
		p, bad := netip.ParsePrefix(g.String())
		if a := p.Addr(); bad == nil && a.Is4() == v4 && a.IsGlobalUnicast() {
			all = append(all, a)
		}
	}
	return all, err
}

// outward returns the address from which the kernel would send to hosts beyond the default
// gateway.
func outward(v4 bool) (netip.Addr, error) {
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

// preferPublic is a net.Dialer's Control function. Otherwise the kernel would choose a temporary
// address if there is one (use_tempaddr 2), and drop it within days (RFC 8981).
func preferPublic(_, _ string, c syscall.RawConn) error {
	return c.Control(func(fd uintptr) {
		// A sandbox that lacks the option has no temporary addresses either.
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_ADDR_PREFERENCES, preferSrcPublic)
	})
}

// claimAddresses warns if another urdmad has a port's address on the same network interface: both
// would receive the packets for it, and each would refuse those for the other's programs. ARP
// cannot detect this, because both have the same Ethernet address.
func (c *Core) claimAddresses() {
	for i, p := range c.Config.Ports {
		if v, err := config.ParseVdev(p.Vdev); err != nil || !v.OnInterface() {
			continue
		}
		claim, holder, err := claimAddress(scopeOf(c.Ports[i].Info()), p.Address.Addr())
		switch {
		case err == nil:
			c.claims = append(c.claims, claim)
		case errors.Is(err, unix.EADDRINUSE):
			c.Log.Warn("another urdmad has the port's address on the same network interface, and takes packets that are for this one: give one of them another address",
				"port", p.Name, "address", p.Address.Addr().String(), "interface", c.Ports[i].Info().Interface, "process", holder)
		default:
			c.Log.Warn("nobody will notice if another urdmad has the port's address", "port", p.Name, "error", err)
		}
	}
}

// claimAddress claims an address on an interface by binding an abstract socket, whose name space
// belongs to the network namespace like the interface (unix(7)). The claim lasts until it is
// closed. If the address is already claimed, the error wraps EADDRINUSE; holder is the claiming
// process, 0 if unknown.
func claimAddress(index uint32, a netip.Addr) (claim io.Closer, holder int, err error) {
	name := &net.UnixAddr{Name: fmt.Sprintf("@urdma/%d/%s", index, a), Net: "unix"}
	l, err := net.ListenUnix("unix", name)
	if err == nil {
		return l, 0, nil
	}
	if c, bad := net.DialUnix("unix", nil, name); bad == nil {
		defer c.Close()
		var o account.Owner
		o.Learn(c)
		holder = o.PID
	}
	return nil, holder, err
}

// scopeOf returns the index of the kernel interface below a port, 0 if there is none. Programs
// use it with a link-local address.
func scopeOf(info port.Info) uint32 {
	i, err := net.InterfaceByName(info.Interface)
	if err != nil {
		return 0
	}
	return uint32(i.Index)
}
