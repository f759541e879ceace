package lab

import (
	"fmt"
	"os"
)

// Routed are two hosts on links of MTU 1,500 with two routers between them, whose
// own link may take less.
type Routed struct {
	A, B    *Node
	routers [2]*Namespace
}

// JoinRouted makes them and starts both urdmads, each on a UDP socket. The hosts
// discard what ICMP tells of the path's MTU if silent is set. middle is the MTU
// between the routers.
func (l *Lab) JoinRouted(middle int, silent bool) (r *Routed, err error) {
	r = &Routed{}
	for i := range r.routers {
		if r.routers[i], err = l.NewNamespace(); err != nil {
			return nil, err
		}
	}
	ends := [2]**Node{&r.A, &r.B}
	for i, end := range ends {
		if *end, err = l.routedHost(i, r.routers[i], silent); err != nil {
			return nil, err
		}
	}
	if err := vethNamed(r.routers[0], "middle", r.routers[1], "middle", middle); err != nil {
		return nil, err
	}
	for i, router := range r.routers {
		if err := router.all([][]string{
			{"ip", "address", "add", fmt.Sprintf("198.18.3.%d/24", i+1), "dev", "middle"},
			{"ip", "route", "add", fmt.Sprintf("198.18.%d.0/24", 2-i), "via", fmt.Sprintf("198.18.3.%d", 2-i)},
			{"sysctl", "-q", "-w", "net.ipv4.ip_forward=1"},
		}); err != nil {
			return nil, err
		}
	}
	for _, end := range ends {
		if err := (*end).StartDaemon(); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// routedHost makes host i, 198.18.i+1.1, behind a router.
func (l *Lab) routedHost(i int, router *Namespace, silent bool) (*Node, error) {
	ns, err := l.NewNamespace()
	if err != nil {
		return nil, err
	}
	uid := 0
	if os.Getuid() == 0 {
		uid = OrdinaryUID - i
	}
	net := fmt.Sprintf("198.18.%d.", i+1)
	n, err := l.newNode(string(rune('a'+i)), net+"1", ns, uid)
	if err != nil {
		return nil, err
	}
	if err := vethNamed(ns, "veth0", router, "host", 1500); err != nil {
		return nil, err
	}
	if err := router.Run("ip", "address", "add", net+"254/24", "dev", "host"); err != nil {
		return nil, err
	}
	commands := [][]string{{"ip", "address", "add", net + "1/24", "dev", "veth0"}, {"ip", "route", "add", "default", "via", net + "254"}}
	if silent { // 2: messages about the path's MTU are discarded (ip-sysctl)
		commands = append(commands, []string{"sysctl", "-q", "-w", "net.ipv4.ip_no_pmtu_disc=2"})
	}
	if err := ns.all(commands); err != nil {
		return nil, err
	}
	return n, n.configure(portConfig(UDP, UDP.Device, n.Address, nil))
}

// SetMiddle gives the link between the routers another MTU.
func (r *Routed) SetMiddle(mtu int) error {
	for _, n := range r.routers {
		if err := n.Run("ip", "link", "set", "middle", "mtu", fmt.Sprint(mtu)); err != nil {
			return err
		}
	}
	return nil
}

// all runs commands one after the other.
func (n *Namespace) all(commands [][]string) error {
	for _, c := range commands {
		if err := n.Run(c...); err != nil {
			return err
		}
	}
	return nil
}
