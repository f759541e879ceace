package lab

import (
	"fmt"
	"os"
	"strings"
)

// JoinSwitch sets up n hosts, 2 to 26, on one Ethernet switch (a bridge of the kernel, in a namespace of its own) and
// starts their urdmads. The wire must be one that needs namespaces.
func (l *Lab) JoinSwitch(w Wire, hosts int, settings Config) ([]*Node, error) {
	nodes, err := l.onSwitch(w, hosts, settings)
	if err == nil {
		err = startDaemons(nodes)
	}
	if err != nil {
		return nil, fmt.Errorf("%d hosts, wire %s: %w", hosts, w.Name, err)
	}
	return nodes, nil
}

func (l *Lab) onSwitch(w Wire, hosts int, settings Config) ([]*Node, error) {
	if !w.NeedsNamespaces() {
		return nil, fmt.Errorf("%s joins no Ethernet interfaces", w.Device)
	}
	bridge, err := l.NewNamespace()
	if err != nil {
		return nil, err
	}
	if err := bridge.Run("ip", "link", "add", "switch", "mtu", fmt.Sprint(w.mtu()), "type", "bridge"); err != nil {
		return nil, err
	}
	if err := bridge.Run("ip", "link", "set", "switch", "up"); err != nil {
		return nil, err
	}
	var nodes []*Node
	for i := range hosts {
		n, err := l.ethernetNode(w, i)
		if err != nil {
			return nil, err
		}
		port := fmt.Sprintf("port%d", i)
		if err := vethNamed(bridge, port, n.Net, "veth0", w.mtu()); err != nil {
			return nil, err
		}
		if err := bridge.Run("ip", "link", "set", port, "master", "switch"); err != nil {
			return nil, err
		}
		if err := n.addressed(w, i, settings); err != nil {
			return nil, err
		}
		nodes = append(nodes, n)
	}
	return nodes, nil
}

// veth joins two hosts by a pair of interfaces.
func (l *Lab) veth(w Wire, settings Config) (a, b *Node, err error) {
	var nodes [2]*Node
	for i := range nodes {
		if nodes[i], err = l.ethernetNode(w, i); err != nil {
			return nil, nil, err
		}
	}
	if err := veth(nodes[0].Net, nodes[1].Net, w.mtu()); err != nil {
		return nil, nil, err
	}
	for i, n := range nodes {
		if err := n.addressed(w, i, settings); err != nil {
			return nil, nil, err
		}
	}
	return nodes[0], nodes[1], nil
}

// overLo makes two urdmads on one host.
func (l *Lab) overLo(w Wire, settings Config) (a, b *Node, err error) {
	ns, err := l.NewNamespace()
	if err != nil {
		return nil, nil, err
	}
	var nodes [2]*Node
	for i := range nodes {
		address := w.address(1, i+1)
		if err := ns.Run("ip", "address", "add", address+"/24", "dev", "lo"); err != nil {
			return nil, nil, err
		}
		n, err := l.newNode(string(rune('a'+i)), address, ns, 0)
		if err == nil {
			err = n.configure(portConfig(w, w.Device, address, settings))
		}
		if err != nil {
			return nil, nil, err
		}
		nodes[i] = n
	}
	return nodes[0], nodes[1], nil
}

// ethernetNode makes a host with a network namespace, without an interface yet.
func (l *Lab) ethernetNode(w Wire, i int) (*Node, error) {
	ns, err := l.NewNamespace()
	if err != nil {
		return nil, err
	}
	uid := 0
	if (w.Device == UDP.Device || w.Device == TCP.Device) && !w.Capable && os.Getuid() == 0 {
		uid = OrdinaryUID - i // each host has another user, without capabilities
	}
	return l.newNode(string(rune('a'+i)), w.address(1, i+1), ns, uid)
}

// addressed gives the kernel of a host either the port's own address or a neighbouring one, from which it pings the
// other ports, and writes urdma.json.
func (n *Node) addressed(w Wire, i int, settings Config) error {
	kernel := w.address(1, i+101)
	if w.Kernel {
		kernel = n.Address
	}
	add := []string{"ip", "address", "add", kernel + "/24", "dev", "veth0"}
	if w.IPv6 { // usable at once, without duplicate address detection
		plain, _, _ := strings.Cut(kernel, "%")
		add = []string{"ip", "address", "add", plain + "/64", "dev", "veth0", "nodad"}
		if err := n.Net.Run("ip", "address", "add", KernelIPv4(i)+"/24", "dev", "veth0"); err != nil {
			return err
		}
	}
	if err := n.Net.Run(add...); err != nil {
		return err
	}
	return n.configure(portConfig(w, w.Device, n.Address, settings))
}

// Tap makes a host whose interface is a tap, veth0; a virtual machine may have the other end. Start its urdmad when
// the other end exists.
func (l *Lab) Tap(w Wire, settings Config) (*Node, error) {
	n, err := l.ethernetNode(w, 0)
	if err != nil {
		return nil, err
	}
	for _, argv := range [][]string{{"ip", "tuntap", "add", "veth0", "mode", "tap"},
		{"ip", "link", "set", "veth0", "mtu", fmt.Sprint(w.mtu()), "up"}} {
		if err := n.Net.Run(argv...); err != nil {
			return nil, err
		}
	}
	return n, n.addressed(w, 0, settings)
}
