package main

import (
	"fmt"
	"net/netip"
	"slices"

	"urdma/config"
	"urdma/urdmad/attach/kernelif"
	"urdma/urdmad/control"
	"urdma/urdmad/serve"
	"urdma/verbs/personality"
)

// shareWithKernel makes the kernel's network interfaces on ports that are configured to have one.
func (d *daemon) shareWithKernel() error {
	d.kernels = map[int]*kernelif.Interface{}
	for i := range d.Config.Ports {
		if p := &d.Config.Ports[i]; p.KernelInterface != "" {
			if err := d.sharePort(i, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// sharePort makes the kernel's network interface on port i.
func (d *daemon) sharePort(i int, p *config.Port) error {
	info := d.Ports[i].Info()
	k, err := kernelif.Open(kernelif.Config{Name: p.KernelInterface, MAC: info.MAC, MTU: info.MTU, Address: p.Address})
	if err != nil {
		return fmt.Errorf("ports[%d].kernel_interface: %w; it needs CAP_NET_ADMIN, /dev/net/tun and a name that no interface has", i, err)
	}
	d.kernels[i] = k
	for _, p := range d.Pollers {
		p.Engine.Interface(i).Kernel = k.Take
	}
	first := d.Pollers[0]
	k.Run(func(frame []byte, done func()) {
		first.Do(func() { first.Engine.Interface(i).Send(frame); done() })
	})
	d.Ports[i].Watch(k.SetLink)
	k.SetLink(d.Ports[i].Link()) // the link may have changed in between
	d.log.Info("the kernel has a network interface on the port", "port", p.Name, "interface", p.KernelInterface)
	return nil
}

// followKernel starts applying changes of the kernel interfaces to their ports.
func (d *daemon) followKernel() error {
	for i, k := range d.kernels {
		if d.Config.Ports[i].Address.Addr().IsUnspecified() {
			d.Links.Lock()
			d.Links.Set(i, 0, linkAway)
			d.Links.Unlock()
		}
		if err := k.Watch(func(s kernelif.State) { d.follow(i, k, s) }); err != nil {
			return fmt.Errorf("ports[%d].kernel_interface: %w", i, err)
		}
	}
	return nil
}

// follow applies the state of the kernel interface to port i: address, MTU, up or down.
func (d *daemon) follow(i int, k *kernelif.Interface, s kernelif.State) {
	p, dev := &d.Config.Ports[i], &d.Server.Devices[i]
	if s.Gone {
		d.log.Error("the kernel's network interface is gone: the port keeps its address, until urdmad is started again",
			"port", p.Name, "interface", p.KernelInterface)
		return
	}
	d.Links.Lock()
	defer d.Links.Unlock()
	was, most := dev.At(), d.Ports[i].Info().MTU
	now := control.Place{Address: addressFrom(s.Addresses, was.Address, p), MTU: max(leastMTU(p), min(s.MTU, most))}
	if s.MTU > most { // refuse it, as a network card's driver does
		if err := k.SetMTU(most); err != nil {
			d.log.Warn("the network interface's MTU is more than the port's: longer packets are lost", "interface",
				p.KernelInterface, "interface_mtu", s.MTU, "mtu", most, "error", err)
		}
	}
	if now != was {
		d.Move(i, now)
		d.log.Info("the port follows its kernel interface", "port", p.Name, "address", now.Address.String(), "mtu", now.MTU,
			"was", was.Address.String(), "mtu_was", was.MTU)
	}
	var ended, begun serve.Reason
	if now.Address.Addr() != was.Address.Addr() {
		ended = serve.AddressLost
		d.showAddress(i, now.Address.Addr())
	}
	if !s.Up || now.Address.Addr().IsUnspecified() {
		begun = linkAway
	} else {
		ended |= linkAway
	}
	d.Links.Set(i, ended, begun)
	d.Links.Show(i) // the subnet needs the new address
}

// closeKernel removes the interfaces.
func (d *daemon) closeKernel() error {
	for _, k := range d.kernels {
		k.Close()
	}
	return nil
}

// addressFrom chooses a port's address from an interface's addresses: the present one if it is in
// the list, or else the first of the same family as the configured address; the unspecified
// address if there is none.
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

// leastMTU returns the smallest value of the setting mtu.
func leastMTU(p *config.Port) int {
	if p.Address.Addr().Is6() {
		return 1280
	}
	return 576
}
