package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"

	"urdma/config"
	"urdma/inspect"
	"urdma/verbs/probe"
)

// Examine judges a machine and returns the most important findings first.
func Examine(f *Facts) []Finding {
	var out []Finding
	for _, look := range []func(*Facts) []Finding{daemon, configuration, ports, cards, links, kernelPart, limits, library,
		program} {
		out = append(out, look(f)...)
	}
	return out
}

func daemon(f *Facts) []Finding {
	switch {
	case errors.Is(f.NoDaemon, inspect.ErrStopped):
		return []Finding{problem("urdmad", "kill -CONT and its process id, or fg in its shell; programs wait for it", "%v",
			f.NoDaemon)}
	case errors.Is(f.NoDaemon, fs.ErrPermission):
		return []Finding{problem("urdmad", "have the administrator let you in, or run one of your own: urdmad, urdma run",
			"%v", f.NoDaemon)}
	case f.Unit != nil:
		return []Finding{problem("urdmad", "correct that, then "+f.start("restart"), "programs find none: %v", f.Unit)}
	case f.Planned && errors.Is(f.NoDaemon, inspect.ErrNotRunning):
		return []Finding{note("urdmad", "start it with this configuration: urdmad --config FILE, or the service",
			"none runs yet: programs find none; looked at %s", strings.Join(f.Places, ", "))}
	case f.Daemon == nil:
		return []Finding{problem("urdmad",
			"start it: "+f.start("start")+", or urdmad; or name its socket by URDMA_SOCKET",
			"programs find none: %v; looked at %s", f.NoDaemon, strings.Join(f.Places, ", "))}
	}
	d := &f.Daemon.Daemon
	out := []Finding{ok("urdmad", "process %d of user %d answers at %s", d.PID, d.UID, f.Socket)}
	if d.Version != f.Version {
		out = append(out, note("versions", "install urdmad, urdma and liburdma.so together and restart urdmad",
			"urdmad is %s and urdma %s", d.Version, f.Version))
	}
	if f.Daemon.Restricted {
		out = append(out, note("rights", "run it as root, or as urdmad's user, to see all",
			"urdmad belongs to user %d, so only your own objects are seen here", d.UID))
	}
	return out
}

// start is the command that starts or restarts the service.
func (f *Facts) start(verb string) string {
	if f.Machine {
		return "systemctl " + verb + " urdmad"
	}
	return "systemctl --user " + verb + " urdmad"
}

func configuration(f *Facts) []Finding {
	if f.ConfigError != nil {
		return []Finding{problem("configuration", "urdma config check says the same; urdma.json(5) explains every setting",
			"%v", f.ConfigError)}
	}
	if f.Config == nil {
		return nil
	}
	out := []Finding{ok("configuration", "%s; ports: %d", f.Config.Source, len(f.Config.Ports))}
	if at, err := netip.ParseAddrPort(f.Config.MetricsAddress); err == nil && f.Daemon == nil &&
		anyCovers(f.Listening, at) {
		out = append(out, problem("configuration", "ss -tlp tells who it is; another metrics_address",
			"a socket of another program listens at metrics_address, %v", at))
	}
	for _, w := range f.Config.Warnings() {
		out = append(out, note("configuration", "change the setting", "%s", w))
	}
	return out
}

// Capability numbers (linux/capability.h).
const (
	capNetAdmin = 12
	capNetRaw   = 13
	capIPCLock  = 14
	capSysAdmin = 21
)

var capNames = map[int]string{capNetAdmin: "CAP_NET_ADMIN", capNetRaw: "CAP_NET_RAW", capIPCLock: "CAP_IPC_LOCK",
	capSysAdmin: "CAP_SYS_ADMIN"}

// needed lists the capabilities that each driver needs, as in the table of docs/ports.md.
var needed = map[string][]int{
	"net_tap":       {capNetAdmin},
	"net_af_packet": {capNetRaw, capNetAdmin},
	"net_af_xdp":    {capNetRaw, capNetAdmin, capSysAdmin, capIPCLock},
}

// ports checks each port of the configuration against the machine.
func ports(f *Facts) (out []Finding) {
	if f.Config == nil {
		return nil
	}
	for i := range f.Config.Ports {
		p := &f.Config.Ports[i]
		about := "port " + p.Name
		out = append(out, privileges(f, about, p)...)
		if name := interfaceOf(p.Vdev); name != "" {
			out = append(out, lower(f, about, name, p)...)
		}
		if strings.HasPrefix(p.Vdev, "tcp") {
			out = append(out, taken(f, about, p)...)
		}
		out = append(out, socketsOf(f, about, p)...)
		if p.PCIAddress != "" && f.HugePages == 0 {
			out = append(out, note(about, "sysctl vm.nr_hugepages=200 before urdmad starts; only a urdmad of root's takes "+
				"them by itself",
				"no huge pages are free: the port works without, with more TLB misses"))
		}
	}
	return out
}

// socketsOf reports what prevents a port from opening its sockets.
func socketsOf(f *Facts, about string, p *config.Port) (out []Finding) {
	v, err := config.ParseVdev(p.Vdev)
	if err != nil {
		return nil
	}
	if at := p.Address.Addr(); v.Kind == config.VdevUDP && !at.IsUnspecified() && !at.IsLoopback() &&
		!has(f.Interfaces, at) {
		out = append(out, problem(about,
			"ip address lists those there are; 0.0.0.0 stands for the one that the kernel chooses",
			"no network interface has its address, %v", at))
	}
	if at := netip.AddrPortFrom(p.Address.Addr(), p.SocketPort()); v.Kind == config.VdevUDP && f.Daemon == nil &&
		anyCovers(f.Bound, at) {
		out = append(out, problem(about,
			"ss -ulp tells who it is, perhaps another urdmad; or give another number, here and at its peers: "+v.Name+",port=N",
			"a socket of another program has its UDP port number, %d", at.Port()))
	}
	if dir := filepath.Dir(v.Socket); v.Server && slices.Contains(f.NoDirectory, dir) {
		out = append(out, problem(about, "mkdir "+dir, "there is no directory %s, in which its socket is to be", dir))
	}
	return out
}

func has(list []Interface, a netip.Addr) bool {
	return slices.ContainsFunc(list, func(i Interface) bool {
		return slices.ContainsFunc(i.Addresses, func(p netip.Prefix) bool { return p.Addr().WithZone("") == a.WithZone("") })
	})
}

// covers reports whether a socket at one address prevents another with the same port number at address at.
func covers(l, at netip.Addr) bool {
	return l == at || l.IsUnspecified() && (l.Is6() || at.Is4())
}

// anyCovers reports whether one of the sockets has this address and port number; for an unspecified address,
// whether one has the port number.
func anyCovers(list []netip.AddrPort, at netip.AddrPort) bool {
	return slices.ContainsFunc(list, func(l netip.AddrPort) bool {
		return l.Port() == at.Port() && (covers(l.Addr(), at.Addr()) || covers(at.Addr(), l.Addr()))
	})
}

// taken reports the TCP port numbers at a port's address that sockets of other programs use.
func taken(f *Facts, about string, p *config.Port) []Finding {
	ours := map[uint16]bool{probe.Port: f.Daemon != nil}
	if f.Daemon != nil {
		for i := range f.Daemon.Listeners {
			if a, err := netip.ParseAddrPort(f.Daemon.Listeners[i].Local); err == nil {
				ours[a.Port()] = true
			}
		}
	}
	var numbers []int
	for _, l := range f.Listening {
		at := p.Address.Addr()
		if covers(l.Addr(), at) && !ours[l.Port()] {
			numbers = append(numbers, int(l.Port()))
		}
	}
	slices.Sort(numbers)
	if numbers = slices.Compact(numbers); len(numbers) == 0 {
		return nil
	}
	return []Finding{ok(about, "sockets of other programs listen on the TCP port numbers %s: rdma_bind_addr fails "+
		"there with EADDRINUSE", strings.Trim(fmt.Sprint(numbers), "[]"))}
}

func privileges(f *Facts, about string, p *config.Port) []Finding {
	driver := strings.TrimRight(strings.SplitN(p.Vdev, ",", 2)[0], "0123456789")
	var missing []string
	needed := needed[driver]
	if p.KernelInterface != "" {
		needed, driver = []int{capNetAdmin}, "kernel_interface"
	}
	for _, c := range needed {
		if f.Capability&(1<<c) == 0 {
			missing = append(missing, capNames[c])
		}
	}
	who := "a urdmad started from here"
	if f.Daemon != nil {
		who = "urdmad's process"
	}
	switch {
	case len(missing) > 0:
		return []Finding{problem(about,
			"the system's service has capabilities (AmbientCapabilities= in urdmad.service); or setcap(8); or a user "+
				"namespace, docs/user-namespace.md",
			"%s needs %s, which %s lacks", driver, strings.Join(missing, " and "), who)}
	case len(needed) > 0:
		return []Finding{ok(about, "%s has the capabilities that %s needs", who, driver)}
	}
	return nil
}

// interfaceOf is the kernel interface that a vdev works on; "" for none. A tap creates its own.
func interfaceOf(vdev string) string {
	if !strings.HasPrefix(vdev, "net_af_") {
		return ""
	}
	for _, arg := range strings.Split(vdev, ",") {
		if name, ok := strings.CutPrefix(arg, "iface="); ok {
			return name
		}
	}
	return ""
}

// lower checks the network interface under a port.
func lower(f *Facts, about, name string, p *config.Port) (out []Finding) {
	for _, i := range f.Interfaces {
		if i.Name != name {
			continue
		}
		if !i.Up {
			out = append(out, problem(about, "ip link set "+name+" up, and see to its cable or peer", "interface %s is down",
				name))
		}
		if p.MTU > i.MTU && !p.RaiseMTU {
			out = append(out, problem(about, fmt.Sprintf("ip link set %s mtu %d, or a smaller mtu in urdma.json", name, p.MTU),
				"its MTU is %d, interface %s has %d", p.MTU, name, i.MTU))
		}
		if len(out) == 0 {
			out = []Finding{ok(about, "interface %s is up, MTU %d", name, i.MTU)}
		}
		return out
	}
	return []Finding{problem(about, "ip link shows the interfaces of this network namespace", "there is no interface %s",
		name)}
}

// links checks the links of the running urdmad's ports.
func links(f *Facts) (out []Finding) {
	if f.Daemon == nil {
		return nil
	}
	for i := range f.Daemon.Ports {
		p := &f.Daemon.Ports[i]
		about := "port " + p.Name
		if !p.LinkUp {
			out = append(out, problem(about,
				"memif: start the other side; a network: see to the interface's link; IPv6: urdmad's log says if another host "+
					"has the address", "its link is down (%s)", p.Driver))
			continue
		}
		out = append(out, ok(about, "%s, %s, link up", p.Driver, p.Address))
		out = append(out, shortened(f, about, p)...)
		out = append(out, offloads(about, p)...)
		if p.RxDropped+p.TxDropped+p.NoBuffer > 0 {
			out = append(out, note(about, "urdma top shows when; larger rx_desc_count and tx_desc_count hold longer bursts",
				"%d packets were dropped here since urdmad started", p.RxDropped+p.TxDropped+p.NoBuffer))
		}
	}
	return out
}

// shortened reports that the MTU of the interface under a port has been lowered since urdmad started: long packets
// are lost, and peers seem to be silent.
func shortened(f *Facts, about string, p *inspect.Port) []Finding {
	if !strings.HasPrefix(p.Driver, "net_af_") { // other drivers don't send raw frames
		return nil
	}
	for _, i := range f.Interfaces {
		if i.Name == p.Interface && i.MTU < p.MTU {
			return []Finding{problem(about, fmt.Sprintf("ip link set %s mtu %d, or start urdmad again", i.Name, p.MTU),
				"its MTU is %d, interface %s has %d now: longer packets are lost, and connections end since the peer does not "+
					"answer", p.MTU, i.Name, i.MTU)}
		}
	}
	return nil
}

// offloads reports the kernel offloads of a udp port.
func offloads(about string, p *inspect.Port) []Finding {
	switch {
	case p.Offloads == "":
		return nil
	case strings.Contains(p.Offloads, "one datagram at a time"):
		return []Finding{note(about, "Linux 4.18 sends segments and Linux 5.0 joins what arrives; a port without IPv4 "+
			"options and IPsec has both",
			"offloads: %s: each datagram costs a way through the kernel", p.Offloads)}
	}
	return []Finding{ok(about, "offloads: %s", p.Offloads)}
}

func kernelPart(f *Facts) (out []Finding) {
	release := fmt.Sprintf("Linux %d.%d", f.Kernel[0], f.Kernel[1])
	if before(f.Kernel, 6, 12) {
		out = append(out, note("kernel", "nothing has to be done; Linux 6.12 lets the poll loop ask for a shorter slice",
			"%s: with programs that spin on all cores, wake-ups take longer than on newer ones", release))
	} else {
		out = append(out, ok("kernel", "%s", release))
	}
	return out
}

func before(v [2]int, major, minor int) bool {
	return v[0] != 0 && (v[0] < major || v[0] == major && v[1] < minor)
}

// Minimum versions and limits that supported Linux distributions provide.
const (
	usualMapCount  = 65530
	usualOpenFiles = 1024
)

func limits(f *Facts) (out []Finding) {
	if f.MaxMapCount > 0 && f.MaxMapCount < usualMapCount {
		out = append(out, note("vm.max_map_count", fmt.Sprintf("sysctl vm.max_map_count=%d", usualMapCount),
			"%d mappings of a process are few: registrations fail earlier", f.MaxMapCount))
	}
	if f.OpenFiles < usualOpenFiles {
		out = append(out, note("open files", "ulimit -n 4096",
			"%d descriptors for a program: each device, completion channel and event channel takes some", f.OpenFiles))
	}
	if f.MemLock != math.MaxUint64 && uses(f.Config, "net_af_xdp") {
		out = append(out, note("memlock", "LimitMEMLOCK=infinity in the unit, or CAP_IPC_LOCK",
			"af_xdp locks memory, and the limit is %d bytes", f.MemLock))
	}
	if len(out) == 0 {
		out = []Finding{ok("limits", "descriptors and mappings suffice; registered memory counts against no memlock limit")}
	}
	return out
}

func uses(c *config.Config, driver string) bool {
	if c == nil {
		return false
	}
	for i := range c.Ports {
		if strings.HasPrefix(c.Ports[i].Vdev, driver) {
			return true
		}
	}
	return false
}

func library(f *Facts) []Finding {
	if f.LibraryError != nil {
		return []Finding{problem("liburdma.so", "make library, make install, or --lib of urdma exec", "%v", f.LibraryError)}
	}
	return []Finding{ok("liburdma.so", "%s", f.Library)}
}

func program(f *Facts) []Finding {
	p := f.Program
	switch {
	case p == nil:
		return nil
	case p.Refusal != nil:
		return []Finding{problem("program",
			"use a dynamically linked build that gains no privilege when started; Go programs use package verbs", "%v",
			p.Refusal)}
	}
	var out []Finding
	switch {
	case p.Links:
		out = append(out, ok("program", "%s links with libibverbs or librdmacm, so urdma exec reaches it", p.Path))
	case p.Opens:
		out = append(out, ok("program",
			"%s loads libibverbs or librdmacm while it runs (dlopen), and under urdma exec gets liburdma.so", p.Path))
	default:
		out = append(out, note("program", "nothing, if one of its own libraries or plug-ins does; ldd(1) tells",
			"%s itself names neither libibverbs nor librdmacm", p.Path))
	}
	if p.Sanitize {
		out = append(out, ok("program",
			"it is built with AddressSanitizer; urdma exec lets it start (ASAN_OPTIONS=verify_asan_link_order=0)"))
	}
	return out
}
