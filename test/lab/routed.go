package lab

import (
	"fmt"
	"os"
)

// Routed is two hosts on links of MTU 1,500, with two routers between them; the link between the routers may have a
// smaller MTU.
type Routed struct {
	A, B    *Node
	routers [2]*Namespace
	plan    routedPlan
}

// routedPlan has the addresses of networks 1 to 3; network 3 is between the routers.
type routedPlan struct {
	wire       Wire
	v6, silent bool
}

func (p routedPlan) host(net, host int) string {
	if p.v6 {
		return fmt.Sprintf("fd00:0:0:%d::%d", net, host)
	}
	return fmt.Sprintf("198.18.%d.%d", net, host)
}

func (p routedPlan) prefix() string {
	if p.v6 {
		return "/64"
	}
	return "/24"
}

// add returns the command that gives an interface its address, usable at once.
func (p routedPlan) add(net, host int, device string) []string {
	command := []string{"ip", "address", "add", p.host(net, host) + p.prefix(), "dev", device}
	if p.v6 {
		command = append(command, "nodad")
	}
	return command
}

// route returns the commands that make host i, from 0, a router.
func (p routedPlan) route(i int) [][]string {
	commands := [][]string{p.add(3, i+1, "middle"),
		{"ip", "route", "add", p.host(2-i, 0) + p.prefix(), "via", p.host(3, 2-i)}}
	if !p.v6 {
		return append(commands, []string{"sysctl", "-q", "-w", "net.ipv4.ip_forward=1"})
	}
	commands = append(commands, []string{"sysctl", "-q", "-w", "net.ipv6.conf.all.forwarding=1"})
	if p.silent { // one error in days, of any type
		commands = append(commands, []string{"sysctl", "-q", "-w", "net.ipv6.icmp.ratemask=0-255",
			"net.ipv6.icmp.ratelimit=1000000000"})
	}
	return commands
}

// JoinRouted makes the hosts and routers and starts both urdmads, each on a UDP or TCP wire, IPv4 or IPv6. If silent
// is set, the hosts ignore ICMP messages about the path's MTU, or, with IPv6, the routers don't send them. middle is
// the MTU of the link between the routers.
func (l *Lab) JoinRouted(w Wire, middle int, silent bool) (r *Routed, err error) {
	r = &Routed{plan: routedPlan{w, w.IPv6, silent}}
	for i := range r.routers {
		if r.routers[i], err = l.NewNamespace(); err != nil {
			return nil, err
		}
	}
	ends := [2]**Node{&r.A, &r.B}
	for i, end := range ends {
		if *end, err = l.routedHost(i, r.routers[i], r.plan); err != nil {
			return nil, err
		}
	}
	if err := vethNamed(r.routers[0], "middle", r.routers[1], "middle", middle); err != nil {
		return nil, err
	}
	for i, router := range r.routers {
		if err := router.all(r.plan.route(i)); err != nil {
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

// routedHost makes host i, address 1 of network i+1, behind a router.
func (l *Lab) routedHost(i int, router *Namespace, plan routedPlan) (*Node, error) {
	ns, err := l.NewNamespace()
	if err != nil {
		return nil, err
	}
	uid := 0
	if os.Getuid() == 0 {
		uid = OrdinaryUID - i
	}
	n, err := l.newNode(string(rune('a'+i)), plan.host(i+1, 1), ns, uid)
	if err != nil {
		return nil, err
	}
	if err := vethNamed(ns, "veth0", router, "host", 1500); err != nil {
		return nil, err
	}
	if err := router.all([][]string{plan.add(i+1, 254, "host")}); err != nil {
		return nil, err
	}
	commands := [][]string{plan.add(i+1, 1, "veth0"), {"ip", "route", "add", "default", "via", plan.host(i+1, 254)}}
	if plan.silent && !plan.v6 { // 2: messages about the path's MTU are ignored (ip-sysctl)
		commands = append(commands, []string{"sysctl", "-q", "-w", "net.ipv4.ip_no_pmtu_disc=2"})
	}
	if err := ns.all(commands); err != nil {
		return nil, err
	}
	return n, n.configure(portConfig(plan.wire, plan.wire.Device, n.Address, nil))
}

// SetMiddle sets the MTU of the link between the routers.
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
