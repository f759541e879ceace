package doctor

import (
	"encoding/json"
	"errors"
	"math"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"urdma/config"
	"urdma/inspect"
)

// healthy is a machine without problems.
func healthy(t *testing.T, vdev string) *Facts {
	t.Helper()
	file := t.TempDir() + "/urdma.json"
	if err := os.WriteFile(file, []byte(`{"ports":[{"vdev":"`+vdev+`","ipv4_address":"198.18.0.1/24"}]}`),
		0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.LoadStrict(file)
	if err != nil {
		t.Fatal(err)
	}
	own := netip.MustParsePrefix("198.18.0.1/24")
	return &Facts{Version: "1", Socket: "/run/urdma/urdmad.sock", Places: []string{"/run/urdma/urdmad.sock"}, Config: c,
		Daemon: &inspect.Snapshot{Daemon: inspect.Daemon{Version: "1", PID: 7},
			Ports: []inspect.Port{{Name: "urdma0", Driver: "loopback", Address: "198.18.0.1/24", LinkUp: true}}},
		Capability: math.MaxUint64, Interfaces: []Interface{{Name: "lo", Up: true, MTU: 65536,
			Addresses: []netip.Prefix{own}},
			{Name: "eth1", Up: true, MTU: 1500}}, Kernel: [2]int{6, 12}, MaxMapCount: 65530, MemLock: math.MaxUint64,
		OpenFiles: 4096,
		HugePages: 64, Library: "/usr/lib/liburdma.so"}
}

// TestExamine: each problem is found with its remedy, and none on a healthy machine.
func TestExamine(t *testing.T) {
	const packet = "net_af_packet0,iface=eth1"
	for _, c := range []struct {
		name, vdev string
		change     func(f *Facts)
		verdict    Verdict
		text       string // part of the finding
		remedy     string
	}{
		{"all is well", packet, func(*Facts) {}, OK, "", ""},
		{"no urdmad", "loopback", func(f *Facts) { f.Daemon, f.NoDaemon = nil, errors.New("no urdmad is running") }, Problem,
			"looked at /run/urdma/urdmad.sock", "start it"},
		{"no urdmad of root's", "loopback", func(f *Facts) { f.Daemon, f.NoDaemon, f.Machine = nil, inspect.ErrNotRunning, true },
			Problem, "looked at /run/urdma/urdmad.sock", "start it: systemctl start urdmad"},
		{"a unit that failed", "loopback", func(f *Facts) {
			f.Daemon, f.NoDaemon, f.Unit = nil, errors.New("it has ended"), errors.New("failed: urdma.json:1: wrong")
		}, Problem, "programs find none: failed: urdma.json:1: wrong", "correct that, then systemctl --user restart urdmad"},
		{"no urdmad yet", "loopback", func(f *Facts) { f.Daemon, f.NoDaemon, f.Planned = nil, inspect.ErrNotRunning, true },
			Note, "none runs yet", "urdmad --config"},
		{"MTU lowered", packet, func(f *Facts) {
			f.Daemon.Ports[0] = inspect.Port{Name: "urdma0", Driver: "net_af_packet", Interface: "eth1", MTU: 1501, LinkUp: true}
		}, Problem, "its MTU is 1501, interface eth1 has 1500 now", "ip link set eth1 mtu 1501"},
		// the sockets belong to urdmad itself
		{"udp", "udp", func(f *Facts) { f.Bound = []netip.AddrPort{netip.MustParseAddrPort("0.0.0.0:30035")} }, OK, "", ""},
		{"udp address on no interface", "udp", func(f *Facts) { f.Interfaces[0].Addresses = nil }, Problem,
			"no network interface has its address, 198.18.0.1", "ip address"},
		{"no directory", "memif,role=server,socket=/nowhere/sock", func(f *Facts) { f.NoDirectory = []string{"/nowhere"} },
			Problem, "no directory /nowhere", "mkdir /nowhere"},
		{"another version", "loopback", func(f *Facts) { f.Version = "2" }, Note, "urdmad is 1 and urdma 2", "restart"},
		{"restricted", "loopback", func(f *Facts) { f.Daemon.Restricted = true }, Note, "your own objects", "root"},
		{"wrong file", "loopback", func(f *Facts) { f.Config, f.ConfigError = nil, errors.New("urdma.json:1: wrong") },
			Problem, "urdma.json:1: wrong", "config check"},
		{"no capability", packet, func(f *Facts) { f.Capability = 1 << capNetRaw }, Problem,
			"needs CAP_NET_ADMIN, which urdmad's process lacks", "setcap"},
		{"an interface for the kernel without capability", "memif,role=server,socket=/x",
			func(f *Facts) { f.Config.Ports[0].KernelInterface, f.Capability = "urdma0", 0 }, Problem,
			"kernel_interface needs CAP_NET_ADMIN", "setcap"},
		{"xdp without capability", "net_af_xdp0,iface=eth1", func(f *Facts) { f.Capability = 1<<capNetRaw | 1<<capNetAdmin },
			Problem, "CAP_SYS_ADMIN and CAP_IPC_LOCK", "setcap"},
		{"no interface", packet, func(f *Facts) { f.Interfaces = f.Interfaces[:1] }, Problem, "there is no interface eth1",
			"ip link"},
		{"interface down", packet, func(f *Facts) { f.Interfaces[1].Up = false }, Problem, "interface eth1 is down",
			"ip link set eth1 up"},
		{"small MTU", packet, func(f *Facts) { f.Config.Ports[0].MTU, f.Interfaces[1].MTU = 1500, 1400 }, Problem,
			"interface eth1 has 1400", "mtu 1500"},
		{"kernel has the address too", packet, func(f *Facts) { f.Interfaces[1].Addresses = f.Interfaces[0].Addresses }, OK,
			"", ""},
		{"link down", "loopback", func(f *Facts) { f.Daemon.Ports[0].LinkUp = false }, Problem, "its link is down",
			"other side"},
		{"address on no interface", "loopback", func(f *Facts) { f.Interfaces[0].Addresses = nil }, OK, "", ""},
		{"no offload", "loopback", func(f *Facts) {
			f.Daemon.Ports[0].Offloads = "sends one datagram at a time, receives up to 64 joined datagrams at a time"
		}, Note, "sends one datagram at a time", "Linux 4.18"},
		{"offloads", "loopback", func(f *Facts) { f.Daemon.Ports[0].Offloads = "sends up to 64 segments at a time" }, OK, "",
			""},
		{"drops", "loopback", func(f *Facts) { f.Daemon.Ports[0].RxDropped = 5 }, Note, "5 packets were dropped",
			"rx_desc_count"},
		{"old kernel", "loopback", func(f *Facts) { f.Kernel = [2]int{6, 1} }, Note, "Linux 6.1", "6.12"},
		{"few mappings", "loopback", func(f *Facts) { f.MaxMapCount = 1000 }, Note, "1000 mappings", "sysctl"},
		{"few descriptors", "loopback", func(f *Facts) { f.OpenFiles = 8 }, Note, "8 descriptors", "ulimit"},
		{"memlock", "net_af_xdp0,iface=eth1", func(f *Facts) { f.MemLock = 65536 }, Note, "af_xdp locks memory",
			"LimitMEMLOCK"},
		{"no library", "loopback", func(f *Facts) { f.LibraryError = errors.New("liburdma.so not found") }, Problem,
			"not found", "--lib"},
		{"static program", "loopback",
			func(f *Facts) { f.Program = &Program{Refusal: errors.New("it is statically linked")} }, Problem,
			"statically linked", "dynamically"},
		{"dlopen", "loopback", func(f *Facts) { f.Program = &Program{Path: "/x", Opens: true} }, OK, "", ""},
		{"other program", "loopback", func(f *Facts) { f.Program = &Program{Path: "/x"} }, Note, "names neither", "ldd"},
		{"sanitizer", "loopback", func(f *Facts) { f.Program = &Program{Path: "/x", Links: true, Sanitize: true} }, OK, "",
			""},
	} {
		f := healthy(t, c.vdev)
		c.change(f)
		found := false
		for _, x := range Examine(f) {
			if (x.Remedy == "") != (x.Verdict == OK) {
				t.Errorf("%s: %+v: a remedy belongs to what is not ok", c.name, x)
			}
			if x.Verdict == OK {
				continue
			}
			if c.text == "" || x.Verdict != c.verdict || !strings.Contains(x.Text, c.text) ||
				!strings.Contains(x.Remedy, c.remedy) {
				t.Errorf("%s: found %+v", c.name, x)
			}
			found = true
		}
		if found == (c.text == "") {
			t.Errorf("%s: found: %v", c.name, found)
		}
	}
}

func TestHugepages(t *testing.T) {
	f := healthy(t, "loopback")
	f.Config.Ports[0].Vdev, f.Config.Ports[0].PCIAddress, f.HugePages = "", "0000:3b:00.0", 0
	if text, _ := json.Marshal(Examine(f)); !strings.Contains(string(text), "no huge pages") {
		t.Errorf("no word of hugepages: %s", text)
	}
}

// TestCards: problems of a port's card, and advice for cards that no port uses.
func TestCards(t *testing.T) {
	const address = "0000:3b:00.0"
	for _, c := range []struct {
		name         string
		change       func(f *Facts, c *Card)
		verdict      Verdict
		text, remedy string
	}{
		{"all is well", func(*Facts, *Card) {}, OK,
			"IOMMU group 7; back to the kernel, as root: echo  >/sys/bus/pci/devices/0000:3b:00.0/driver_override; " +
				"echo 0000:3b:00.0 >/sys/bus/pci/devices/0000:3b:00.0/driver/unbind; echo 0000:3b:00.0 >/sys/bus/pci/drivers_probe",
			""},
		{"no such card", func(f *Facts, _ *Card) { f.Cards = nil }, Problem, "no network card " + address, "lspci"},
		{"the kernel's", func(_ *Facts, c *Card) { c.Driver, c.Interface = "e1000e", "eth1" }, Problem,
			"driver e1000e, interface eth1 198.18.0.1/24, which the kernel loses: connections through it end, ssh too",
			"as root: modprobe vfio-pci; echo vfio-pci >/sys/bus/pci/devices/0000:3b:00.0/driver_override; "},
		{"nobody's", func(_ *Facts, c *Card) { c.Driver = "" }, Problem, "bound to no driver", "vfio-pci"},
		{"shared with the kernel", func(_ *Facts, c *Card) { c.Driver = "mlx5_core" }, OK, "driver mlx5_core", ""},
		{"no IOMMU", func(_ *Facts, c *Card) { c.Group = "" }, Note, "in no IOMMU group", "intel_iommu=on"},
		{"a group with others", func(_ *Facts, c *Card) { c.Others = []string{"0000:3b:00.1 (nvme)"} }, Problem,
			"0000:3b:00.1 (nvme)", "vfio-pci too"},
		{"no permission", func(f *Facts, c *Card) { c.Refused, f.Daemon = os.ErrPermission, nil }, Problem,
			"/dev/vfio/7: permission denied", "urdma-nic"},
		{"memlock", func(f *Facts, _ *Card) { f.MemLock, f.Capability = 8<<20, 0 }, Problem, "the limit is 8388608 bytes",
			"LimitMEMLOCK=infinity"},
		{"memlock, with the capability", func(f *Facts, _ *Card) { f.MemLock = 8 << 20 }, OK, "IOMMU group 7", ""},
		{"far from the worker", func(f *Facts, c *Card) {
			c.Node, f.Nodes, f.Config.Workers = 1, map[int]int{3: 0}, []config.Worker{{Core: 3}}
		}, Note, "NUMA node 1, worker core 3 on node 0", "lscpu"},
		{"a spare one", func(f *Facts, _ *Card) {
			f.Config.Ports[0].PCIAddress, f.Config.Ports[0].Vdev = "", "loopback"
		}, OK, `bound to vfio-pci: "pci_address": "0000:3b:00.0"`, ""},
		{"a spare one of the kernel's", func(f *Facts, c *Card) {
			f.Config.Ports[0].PCIAddress, f.Config.Ports[0].Vdev, c.Driver = "", "loopback", "igb"
		}, OK, "driver igb; urdma doctor --cards has the command", ""},
		{"the same with its command", func(f *Facts, c *Card) {
			f.Config.Ports[0].PCIAddress, f.Config.Ports[0].Vdev, c.Driver, f.Commands = "", "loopback", "igb", true
		}, OK, "driver igb; for urdmad, as root: modprobe vfio-pci; ", ""},
	} {
		f := healthy(t, "loopback")
		f.Config.Ports[0].Vdev, f.Config.Ports[0].PCIAddress = "", address
		f.Interfaces[1].Addresses = f.Interfaces[0].Addresses
		f.Cards = []Card{{Address: address, ID: "8086:10d3", Driver: "vfio-pci", Group: "7", File: "/dev/vfio/7", Node: -1}}
		c.change(f, &f.Cards[0])
		found := cards(f)
		if len(found) != 1 || found[0].Verdict != c.verdict || !strings.Contains(found[0].Text, c.text) ||
			!strings.Contains(found[0].Remedy, c.remedy) {
			t.Errorf("%s: found %+v", c.name, found)
		}
	}
}

// TestOnlyCard: no command that cuts the machine off is printed unasked, and none without the warning.
func TestOnlyCard(t *testing.T) {
	f := healthy(t, "loopback")
	f.Interfaces[0].Addresses = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/8")}
	f.Interfaces[1].Addresses = []netip.Prefix{netip.MustParsePrefix("10.0.2.15/24")}
	f.Cards = []Card{{Address: "0000:00:03.0", ID: "1af4:1000", Driver: "virtio-pci", Interface: "eth1", Node: -1}}
	if text := cards(f)[0].Text; strings.Contains(text, "driver_override") || strings.Contains(text, "loses") {
		t.Errorf("unasked: %s", text)
	}
	f.Commands = true
	const warning = "eth1 10.0.2.15/24, which the kernel loses: connections through it end, ssh too, and nothing else " +
		"connects this machine; for urdmad, as root: modprobe"
	if text := cards(f)[0].Text; !strings.Contains(text, warning) {
		t.Errorf("asked: %s", text)
	}
}

// TestCardsOfSysfs: finds cards, their interfaces and the other members of their groups.
func TestCardsOfSysfs(t *testing.T) {
	sys := t.TempDir()
	add := func(address, class, driver string, files map[string]string) {
		t.Helper()
		dev := filepath.Join(sys, "bus/pci/devices", address)
		group := filepath.Join(sys, "kernel/iommu_groups/7/devices")
		for _, dir := range []string{dev, group} {
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		for link, target := range map[string]string{dev + "/driver": "/drivers/" + driver,
			dev + "/iommu_group": filepath.Dir(group), group + "/" + address: dev} {
			if err := os.Symlink(target, link); err != nil {
				t.Fatal(err)
			}
		}
		files["class"] = class + "\n"
		for name, text := range files {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(dev, name)), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dev, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	add("0000:00:01.0", "0x060400", "pcieport", map[string]string{})
	add("0000:00:03.0", "0x020000", "virtio-pci",
		map[string]string{"vendor": "0x1af4\n", "device": "0x1041\n", "numa_node": "-1\n", "virtio0/net/eth1/mtu": "1500"})
	add("0000:00:04.0", "0x020000", "vfio-pci",
		map[string]string{"vendor": "0x8086\n", "device": "0x10d3\n", "numa_node": "1\n"})
	add("0000:00:05.0", "0x010802", "nvme", map[string]string{})
	found := Cards(sys)
	want := []Card{
		{Address: "0000:00:03.0", ID: "1af4:1041", Driver: "virtio-pci", Interface: "eth1", Group: "7", Node: -1,
			Others: []string{"0000:00:05.0 (nvme)"}},
		{Address: "0000:00:04.0", ID: "8086:10d3", Driver: "vfio-pci", Group: "7", Node: 1,
			Others: []string{"0000:00:03.0 (virtio-pci)", "0000:00:05.0 (nvme)"},
			File:   "/dev/vfio/7"},
	}
	for i := range found {
		found[i].Refused = nil // depends on this machine
	}
	if !reflect.DeepEqual(found, want) {
		t.Errorf("found %+v\nwant %+v", found, want)
	}
}

// TestTakenNumbers: a tcp port reports its port numbers that another program uses.
func TestTakenNumbers(t *testing.T) {
	f := healthy(t, "tcp")
	f.Daemon.Listeners = []inspect.Listener{{Local: "198.18.0.1:7174"}}
	for _, a := range []string{"0.0.0.0:22", "198.18.0.1:18515", "198.18.0.1:7174", "127.0.0.1:631", "[::]:22",
		"[::1]:80"} {
		f.Listening = append(f.Listening, netip.MustParseAddrPort(a))
	}
	text, _ := json.Marshal(Examine(f))
	if !strings.Contains(string(text), "TCP port numbers 22 18515: ") {
		t.Errorf("found %s", text)
	}
}

// TestTakenBeforeTheStart: port numbers that urdmad needs and another program uses.
func TestTakenBeforeTheStart(t *testing.T) {
	for _, c := range []struct{ udp, tcp, want string }{
		{"0.0.0.0:4000", "127.0.0.1:1", "UDP port number, 4000"},
		{"[::]:4000", "127.0.0.2:9100", "UDP port number, 4000"},
		{"198.18.0.1:4000", "[::1]:9100", "UDP port number, 4000"},
		{"198.18.0.1:4001", "[::]:9100", "listens at metrics_address, 127.0.0.1:9100"},
		{"198.18.0.2:4000", "127.0.0.1:9100", "listens at metrics_address, 127.0.0.1:9100"},
		{"127.0.0.1:4000", "127.0.0.1:9101", ""},
	} {
		f := healthy(t, "udp,port=4000")
		f.Config.MetricsAddress = "127.0.0.1:9100"
		f.Bound, f.Listening = []netip.AddrPort{netip.MustParseAddrPort(c.udp)},
			[]netip.AddrPort{netip.MustParseAddrPort(c.tcp)}
		if n := Problems(Examine(f)); n != 0 {
			t.Errorf("%+v: %d problems of a urdmad that runs, whose sockets these are", c, n)
		}
		f.Daemon, f.NoDaemon, f.Planned = nil, inspect.ErrNotRunning, true
		list := Examine(f)
		text, _ := json.Marshal(list)
		if n := Problems(list); n != min(len(c.want), 1) || !strings.Contains(string(text), c.want) {
			t.Errorf("%+v: %d problems in %s", c, n, text)
		}
	}
}

// TestNoDirectories: a directory is needed only for a server's socket.
func TestNoDirectories(t *testing.T) {
	here := t.TempDir()
	c := &config.Config{Ports: []config.Port{{Vdev: "memif,role=server,socket=" + here + "/none/a"},
		{Vdev: "memif,role=server,socket=" + here + "/b"},
		{Vdev: "memif,role=client,socket=/nowhere/c"}, {Vdev: "memif,role=server,socket=@d/e"}, {Vdev: "loopback"}}}
	if got := noDirectories(c); !slices.Equal(got, []string{here + "/none"}) {
		t.Errorf("found %q", got)
	}
}

// TestListening: finds the listening sockets of this machine.
func TestListening(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		l, err := net.Listen("tcp", address)
		if err != nil {
			continue // no IPv6 here
		}
		defer l.Close()
		if want := l.Addr().(*net.TCPAddr).AddrPort(); !slices.Contains(listening(), want) {
			t.Errorf("%v is not among %v", want, listening())
		}
	}
}

// TestGather: gathering facts works on this machine.
func TestGather(t *testing.T) {
	f := &Facts{}
	Gather(f)
	if f.Kernel[0] == 0 || len(f.Interfaces) == 0 || f.MaxMapCount == 0 || f.OpenFiles == 0 {
		t.Errorf("%+v", f)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &Program{Path: self} // it contains the names
	p.LookAt([]string{"libc.so.6"})
	if p.Links || !p.Opens {
		t.Errorf("%+v", p)
	}
}
