package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Wire is a kind of connection between two nodes.
type Wire struct {
	// Name identifies the wire in reports.
	Name string
	// Device is the vdev in urdma.json; for memif without role and socket.
	Device string
	// MTU is the port's MTU; 0: 1500; DefaultMTU: none in urdma.json.
	MTU int
	// Kernel: the kernel has the ports' addresses, too.
	Kernel bool
	// Capable: urdmads and programs on UDP and TCP wires run as the lab's user, with root's capabilities if that
	// is root. Otherwise they run as users without capabilities.
	Capable bool
	// IPv6 gives the ports IPv6 addresses; LinkLocal makes them link-local addresses of veth0. The kernels also
	// have IPv4 addresses (KernelIPv4).
	IPv6, LinkLocal bool
	// Relay, if not empty, puts a relay between UDP sockets; these are its flags.
	Relay string
	// Protocol is the ports' protocol; empty: the default.
	Protocol string
	// RawPackets is the ports' raw_packets; empty: the default.
	RawPackets string
	// Workers is the number of workers of each urdmad; 0: URDMA_WORKERS, or the default.
	Workers int
	// Lo: both hosts are one, with two addresses, and lo is the wire.
	Lo bool
}

// All wires. The first two need nothing. UDP and af_packet need network namespaces, which an ordinary user can make
// if user namespaces are allowed.
var (
	Loopback       = Wire{Name: "loopback", Device: "loopback"}
	Memif          = Wire{Name: "memif", Device: "memif"}
	UDP            = Wire{Name: "udp", Device: "udp", Kernel: true}
	TCP            = Wire{Name: "tcp", Device: "tcp", Kernel: true}
	RoCE           = Wire{Name: "rocev2", Device: "udp", Kernel: true, Protocol: "rocev2"}
	RoCEFrames     = Wire{Name: "rocev2/af_packet", Device: "net_af_packet0,iface=veth0", Kernel: true, Protocol: "rocev2"}
	AFPacket       = Wire{Name: "af_packet", Device: "net_af_packet0,iface=veth0"}
	AFPacketKernel = Wire{Name: "af_packet+kernel", Device: "net_af_packet0,iface=veth0", Kernel: true}
	AFXDP          = Wire{Name: "af_xdp", Device: "net_af_xdp0,iface=veth0"}
	AFXDPKernel    = Wire{Name: "af_xdp+kernel", Device: "net_af_xdp0,iface=veth0", Kernel: true}
)

// DefaultMTU lets urdmad choose a port's MTU.
const DefaultMTU = -1

// ByDefault returns the wire with the MTU that urdmad chooses.
func (w Wire) ByDefault() Wire {
	w.Name += "/default"
	w.MTU = DefaultMTU
	return w
}

// Jumbo returns the wire with an MTU of 9,000.
func (w Wire) Jumbo() Wire {
	w.Name += "/9000"
	w.MTU = 9000
	return w
}

// WithWorkers returns the wire with n workers in each urdmad. Tests whose results differ with several workers ask
// for 1.
func (w Wire) WithWorkers(n int) Wire {
	if n > 1 {
		w.Name += fmt.Sprintf("/%d workers", n)
	}
	w.Workers = n
	return w
}

// V6 returns the wire with IPv6 addresses.
func (w Wire) V6() Wire {
	w.Name += "/ipv6"
	w.IPv6 = true
	return w
}

// OfTheLink returns the wire with link-local IPv6 addresses.
func (w Wire) OfTheLink() Wire {
	w = w.V6()
	w.Name += "/link-local"
	w.LinkLocal = true
	return w
}

// KernelIPv4 returns the IPv4 address of host i's kernel, from 0, if the wire has IPv6: many programs exchange their
// numbers only by TCP over IPv4.
func KernelIPv4(i int) string { return fmt.Sprintf("198.18.1.%d", i+1) }

// address returns the address of host i in network n of the lab.
func (w Wire) address(n, i int) string {
	if w.LinkLocal {
		return fmt.Sprintf("fe80::18:%d:%d%%veth0", n, i)
	}
	if w.IPv6 {
		return fmt.Sprintf("fd18:%d::%d", n, i)
	}
	return fmt.Sprintf("198.18.%d.%d", n, i)
}

// OverLo returns the wire between two urdmads of one host, over its lo. The kernel has the addresses.
func (w Wire) OverLo() Wire {
	w.Name += "/lo"
	w.MTU = DefaultMTU
	w.Lo = true
	return w
}

// Relayed returns the wire with a relay in the middle; flags are those of udprelay.
func (w Wire) Relayed(flags string) Wire {
	w.Name += "/relayed " + flags
	w.Relay = flags
	return w
}

// NeedsNamespaces reports whether the wire joins network namespaces.
func (w Wire) NeedsNamespaces() bool { return w.Device != "loopback" && w.Device != "memif" }

// Can returns nil if the wire can be set up here, or an error that says what it needs.
func (l *Lab) Can(w Wire) error {
	switch {
	case !w.NeedsNamespaces() || os.Getuid() == 0:
		return nil
	case strings.HasPrefix(w.Device, "net_af_xdp"):
		return fmt.Errorf("wire %s loads a BPF program, which takes root", w.Name)
	}
	return l.Namespaces()
}

func (w Wire) mtu() int {
	if w.MTU <= 0 {
		return 1500
	}
	return w.MTU
}

// Join sets up the wire and starts both urdmads, each with its configuration and the additional settings. On loopback
// both nodes are one.
func (l *Lab) Join(w Wire, settings Config) (a, b *Node, err error) {
	switch {
	case w.Device == "loopback":
		a, err = l.loopback(w, settings)
		return a, a, err
	case w.Device == "memif":
		a, b, err = l.memif(w, settings)
	case w.Lo:
		a, b, err = l.overLo(w, settings)
	case w.Relay != "":
		r, err := l.JoinRelayed(settings, strings.Fields(w.Relay)...)
		if err != nil {
			return nil, nil, fmt.Errorf("wire %s: %w", w.Name, err)
		}
		return r.A, r.B, nil
	default:
		a, b, err = l.veth(w, settings)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("wire %s: %w", w.Name, err)
	}
	if err := startDaemons([]*Node{a, b}); err != nil {
		return nil, nil, fmt.Errorf("wire %s: %w", w.Name, err)
	}
	return a, b, nil
}

// startDaemons starts the urdmads of hosts, and waits until all links are up.
func startDaemons(nodes []*Node) error {
	for _, step := range []func(*Node) error{(*Node).StartDaemon, waitLink} {
		for _, n := range nodes {
			if err := step(n); err != nil {
				return err
			}
		}
	}
	return nil
}

func waitLink(n *Node) error { return n.WaitLink(Patience) }

func ordinaryUser() int {
	if os.Getuid() == 0 {
		return OrdinaryUID
	}
	return 0
}

// SeveralWorkers reports whether each urdmad has more than one worker.
func (w Wire) SeveralWorkers() bool { return w.workers() > 1 }

func (w Wire) workers() int {
	if w.Workers == 0 {
		n, _ := strconv.Atoi(os.Getenv("URDMA_WORKERS"))
		return n
	}
	return w.Workers
}

func portConfig(w Wire, vdev, address string, settings Config) Config {
	port := Config{"vdev": vdev, "ipv4_address": address + "/24"}
	if w.IPv6 {
		plain, _, _ := strings.Cut(address, "%")
		port = Config{"vdev": vdev, "ipv6_address": plain + "/64"}
	}
	if w.MTU != DefaultMTU {
		port["mtu"] = w.mtu()
	}
	if w.Protocol != "" {
		port["protocol"] = w.Protocol
	}
	if w.RawPackets != "" {
		port["raw_packets"] = w.RawPackets
	}
	c := Config{"ports": []any{port}}
	if n := w.workers(); n > 0 {
		c["workers"] = make([]struct{}, n)
	}
	for name, value := range settings {
		c[name] = value
	}
	return c
}

func (l *Lab) loopback(w Wire, settings Config) (*Node, error) {
	n, err := l.newNode("a", w.address(0, 1), nil, ordinaryUser())
	if err != nil {
		return nil, err
	}
	if err := n.configure(portConfig(w, "loopback", n.Address, settings)); err != nil {
		return nil, err
	}
	return n, n.StartDaemon()
}

func (l *Lab) memif(w Wire, settings Config) (a, b *Node, err error) {
	if a, err = l.newNode("a", w.address(0, 1), nil, ordinaryUser()); err != nil {
		return nil, nil, err
	}
	if b, err = l.newNode("b", w.address(0, 2), nil, ordinaryUser()); err != nil {
		return nil, nil, err
	}
	socket := filepath.Join(a.dir, "wire.sock")
	for _, end := range []struct {
		node *Node
		role string
	}{{a, "server"}, {b, "client"}} {
		vdev := fmt.Sprintf("memif,role=%s,socket=%s", end.role, socket)
		if err := end.node.configure(portConfig(w, vdev, end.node.Address, settings)); err != nil {
			return nil, nil, err
		}
	}
	return a, b, nil
}
