package main

import (
	"fmt"
	"net"
	"net/netip"

	"urdma/config"
)

// anyHost stands for a host beyond the default gateway: an address for
// documentation (RFC 5737), to which nothing is sent.
const anyHost = "192.0.2.1:9"

// placePorts gives udp ports without an address the one that the kernel would
// choose.
func placePorts(cfg *config.Config) error {
	for i := range cfg.Ports {
		p := &cfg.Ports[i]
		if !p.UDP() || !p.Address.Addr().IsUnspecified() {
			continue
		}
		a, err := chosenAddress()
		if err != nil {
			return fmt.Errorf("ports[%d].ipv4_address: 0.0.0.0 needs a default route (%w); expected an address that \"ip address\" shows", i, err)
		}
		p.Address = netip.PrefixFrom(a, p.Address.Bits())
	}
	return nil
}

// chosenAddress is the address from which the kernel would send to hosts that it
// has no other route for.
func chosenAddress() (netip.Addr, error) {
	c, err := net.Dial("udp4", anyHost)
	if err != nil {
		return netip.Addr{}, err
	}
	defer c.Close()
	return c.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap(), nil
}

// socketPort is the UDP port number of a udp port, 0 of any other.
func socketPort(p *config.Port) uint16 {
	v, _ := config.ParseVdev(p.Vdev)
	return v.Port
}
