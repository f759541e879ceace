package main

import (
	"fmt"
	"net/netip"
	"slices"

	"urdma/config"
	"urdma/urdmad/attach/kernelif"
	"urdma/urdmad/attach/sysfs"
	"urdma/urdmad/control"
	"urdma/verbs/personality"
)

// shareWithKernel makes the network interface that the kernel gets on port i.
func (d *daemon) shareWithKernel(i int, p *config.Port) error {
	info := d.ports[i].Info()
	k, err := kernelif.Open(kernelif.Config{Name: p.KernelInterface, MAC: info.MAC, MTU: info.MTU, Address: p.Address})
	if err != nil {
		return fmt.Errorf("ports[%d].kernel_interface: %w; it needs CAP_NET_ADMIN, /dev/net/tun and a name that no interface has", i, err)
	}
	if d.kernels == nil {
		d.kernels = map[int]*kernelif.Interface{}
	}
	d.kernels[i] = k
	d.links.away[i].Store(p.Address.Addr().IsUnspecified())
	for _, p := range d.pollers {
		p.engine.Interface(i).Kernel = k.Take
	}
	first := d.pollers[0]
	k.Run(func(frame []byte, done func()) {
		first.do(func() { first.engine.Interface(i).Send(frame); done() })
	})
	d.ports[i].Watch(k.SetLink)
	k.SetLink(d.ports[i].Link()) // it may have changed in between
	d.log.Info("the kernel has a network interface on the port", "port", p.Name, "interface", p.KernelInterface)
	return nil
}

// followKernel has ports take what their kernel interfaces become.
func (d *daemon) followKernel() error {
	for i, k := range d.kernels {
		if err := k.Watch(func(s kernelif.State) { d.follow(i, k, s) }); err != nil {
			return fmt.Errorf("ports[%d].kernel_interface: %w", i, err)
		}
	}
	return nil
}

// follow has port i take what its kernel interface is now: address, MTU, up or down.
func (d *daemon) follow(i int, k *kernelif.Interface, s kernelif.State) {
	p, dev := &d.cfg.Ports[i], &d.server.Devices[i]
	if s.Gone {
		d.log.Error("the kernel's network interface is gone: the port keeps its address, until urdmad is started again", "port", p.Name, "interface", p.KernelInterface)
		return
	}
	d.links.telling.Lock()
	defer d.links.telling.Unlock()
	was, most := dev.At(), d.ports[i].Info().MTU
	now := control.Place{Address: addressFrom(s.Addresses, was.Address, p), MTU: max(leastMTU(p), min(s.MTU, most))}
	if s.MTU > most { // as a card's driver refuses it
		if err := k.SetMTU(most); err != nil {
			d.log.Warn("the network interface's MTU is more than the port's: longer packets are lost", "interface", p.KernelInterface, "interface_mtu", s.MTU, "mtu", most, "error", err)
		}
	}
	up := d.linkUp(i)
	if now != was {
		if d.shared != nil {
			d.shared.ports[i].Renumber(now.Address.Addr())
		}
		for _, p := range d.pollers {
			p.do(func() {
				p.engine.Interface(i).SetMTU(now.MTU)
				p.engine.Renumber(i, now.Address)
				p.numbers.Renumber(i, now.Address.Addr())
			})
		}
		d.server.SetPlace(i, now)
		d.log.Info("the port follows its kernel interface", "port", p.Name, "address", now.Address.String(), "mtu", now.MTU, "was", was.Address.String(), "mtu_was", was.MTU)
	}
	if now.Address.Addr() != was.Address.Addr() {
		d.links.lost[i].Store(false)
		shown := sysfsDevice(p, d.ports[i])
		shown.Is.Addr = now.Address.Addr()
		if err := sysfs.SetAddress(d.cfg.SysfsDir, shown); err != nil {
			d.log.Warn("sysfs does not show the port's address", "port", p.Name, "error", err)
		}
	}
	d.links.away[i].Store(!s.Up || now.Address.Addr().IsUnspecified())
	d.showLink(i)
	if d.linkUp(i) != up {
		d.tellLink(i, !up)
	}
}

// addressFrom is the one of an interface's addresses that a port takes: the one that it
// has, or else the first of the configured one's kind; the unspecified one if there is none.
func addressFrom(list []netip.Prefix, has netip.Prefix, p *config.Port) netip.Prefix {
	kind := p.Address.Addr()
	fit := func(a netip.Addr) bool {
		if _, ok := personality.UnicastLID(a); !ok && p.Transport == personality.IB || a.Is4() != kind.Is4() {
			return false
		}
		return a.IsGlobalUnicast() && !kind.IsLinkLocalUnicast() || a.IsLinkLocalUnicast() && kind.IsLinkLocalUnicast()
	}
	at := slices.IndexFunc(list, func(a netip.Prefix) bool { return a.Addr() == has.Addr() })
	if at < 0 {
		at = slices.IndexFunc(list, func(a netip.Prefix) bool { return fit(a.Addr()) })
	}
	if at >= 0 {
		return list[at]
	}
	if kind.Is4() {
		return netip.PrefixFrom(netip.IPv4Unspecified(), p.Address.Bits())
	}
	return netip.PrefixFrom(netip.IPv6Unspecified(), p.Address.Bits())
}

// leastMTU is what the setting mtu allows at least.
func leastMTU(p *config.Port) int {
	if p.Address.Addr().Is6() {
		return 1280
	}
	return 576
}

// own is responder.Config's.
func (d *daemon) own(a netip.Addr) bool {
	for i := range d.server.Devices {
		if d.server.Devices[i].At().Address.Addr() == a {
			return true
		}
	}
	return false
}
