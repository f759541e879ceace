package main

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"urdma/config"
	"urdma/urdma/doctor"
)

// machine is the system in which urdma config init looks for ports. Tests replace it.
type machine struct {
	sys string // "/sys"
	// address returns an interface's IPv4 address, or the zero Prefix.
	address func(name string) netip.Prefix
	// mtu returns an interface's MTU, or 0.
	mtu func(name string) int
}

func thisMachine() machine {
	return machine{sys: "/sys", address: interfaceAddress, mtu: interfaceMTU}
}

func interfaceMTU(name string) int {
	i, err := net.InterfaceByName(name)
	if err != nil {
		return 0
	}
	return i.MTU
}

func interfaceAddress(name string) netip.Prefix {
	i, err := net.InterfaceByName(name)
	if err != nil {
		return netip.Prefix{}
	}
	addrs, err := i.Addrs()
	if err != nil {
		return netip.Prefix{}
	}
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is4() {
			return p
		}
	}
	return netip.Prefix{}
}

// ports returns the ports of a new file, and notes on what was left out.
func (m machine) ports(interfaces []string) (ports []startingPort, notes []string, err error) {
	for _, c := range doctor.Cards(m.sys) {
		if !c.Usable() {
			notes = append(notes, unusedNote(c))
			continue
		}
		ports = append(ports, m.nicPort(c, len(ports)))
	}
	for i, name := range interfaces {
		p, err := m.interfacePort(name, i, len(ports))
		if err != nil {
			return nil, nil, err
		}
		ports = append(ports, p)
	}
	if len(ports) == 0 {
		ports = []startingPort{loopbackPort()}
	}
	return ports, notes, nil
}

func unusedNote(c doctor.Card) string {
	driver, loss := "no driver", ""
	if c.Driver != "" {
		driver, loss = "driver "+c.Driver, " (the kernel then loses it: connections through it end, ssh too)"
	}
	note := fmt.Sprintf("Not used: NIC %s (%s): urdma doctor --cards has the command that binds it to vfio-pci%s", c.Address,
		driver, loss)
	if c.Interface != "" {
		note += fmt.Sprintf(", or share it with the kernel: urdma config init --interface %s", c.Interface)
	}
	return note + "."
}

func (m machine) nicPort(c doctor.Card, index int) startingPort {
	address, why := m.addressFor(c.Interface, index)
	return startingPort{
		Comment:        fmt.Sprintf("NIC %s, driver %s", c.Address, c.Driver),
		PCIAddress:     c.Address,
		CommentAddress: why,
		Address:        address,
		CommentMTU:     "9000 where every host and switch of the network has jumbo frames.",
		MTU:            1500,
	}
}

// Limits of urdma.json; startingFile refuses more.
const (
	minMTU = 576
	maxMTU = 9600
)

func (m machine) interfacePort(name string, nth, index int) (startingPort, error) {
	if strings.ContainsAny(name, ",/ ") || name == "" {
		return startingPort{}, fmt.Errorf("--interface %q: no name of a network interface that DPDK takes", name)
	}
	if _, err := os.Stat(filepath.Join(m.sys, "class/net", name)); err != nil {
		return startingPort{}, fmt.Errorf("--interface %s: this machine has no such network interface", name)
	}
	mtu := min(m.mtu(name), maxMTU)
	if mtu < minMTU {
		return startingPort{}, fmt.Errorf("--interface %s: its MTU is %d, urdmad needs at least %d", name, mtu, minMTU)
	}
	address, why := m.addressFor(name, index)
	return startingPort{
		Comment: fmt.Sprintf("Network interface %s over AF_PACKET: no NIC of its own, needs CAP_NET_RAW and "+
			"CAP_NET_ADMIN. net_af_xdp%d is the faster choice where the kernel allows it.", name, nth),
		Vdev:           fmt.Sprintf("net_af_packet%d,iface=%s", nth, name),
		CommentAddress: why,
		Address:        address,
		CommentMTU: fmt.Sprintf("%s has it. More than the interface has needs \"interface_mtu\": \"raise\", and every "+
			"host of the network the same.", name),
		MTU: mtu,
	}, nil
}

// addressFor returns the kernel's address of an interface, or an example.
func (m machine) addressFor(netdev string, index int) (address, why string) {
	if netdev != "" {
		if p := m.address(netdev); p.IsValid() && !p.Addr().IsLoopback() {
			return p.String(), fmt.Sprintf("The address the kernel has on %s.", netdev)
		}
	}
	return fmt.Sprintf("10.2.%d.100/24", index), "An example: give the port an address of its own."
}

func loopbackPort() startingPort {
	p := config.Default().Ports[0]
	return startingPort{
		Comment: "Programs of this machine only; needs neither root nor a NIC. To reach another urdmad: " +
			"\"memif,role=server|client,socket=PATH\" on this machine; \"udp\", a NIC or --interface across machines.",
		Vdev:    p.Vdev,
		Address: p.Address.String(),
	}
}
