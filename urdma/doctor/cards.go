package doctor

import (
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"urdma/config"
)

// Card is an Ethernet controller, a function of the PCI bus.
type Card struct {
	Address   string   // 0000:3b:00.0
	ID        string   // vendor and device, 8086:10d3
	Driver    string   // the driver in the kernel; "" for none
	Interface string   // network interface of the driver; "" for none
	Group     string   // the IOMMU group's number; "" without an IOMMU
	Others    []string // other members of the IOMMU group, because of which vfio-pci cannot hand out the card
	Node      int      // NUMA node, -1 on a machine with one node
	File      string   // "/dev/vfio/" and Group, if vfio-pci has the card
	Refused   error    // why urdmad may not open File
}

// vfio is the driver that hands a card behind an IOMMU to a program.
const vfio = "vfio-pci"

var (
	// userspaceDrivers hand a whole card to a program.
	userspaceDrivers = []string{vfio, "uio_pci_generic", "igb_uio"}
	// sharedDrivers let DPDK and the kernel use a card together.
	sharedDrivers = []string{"mlx4_core", "mlx5_core"}
)

// Usable reports whether DPDK can use the card with its current driver.
func (c *Card) Usable() bool {
	return slices.Contains(userspaceDrivers, c.Driver) || slices.Contains(sharedDrivers, c.Driver)
}

// Cards lists the cards in the order of the bus. sys is the path of sysfs.
func Cards(sys string) (cards []Card) {
	const ethernet = "0x0200"
	devices, _ := filepath.Glob(filepath.Join(sys, "bus/pci/devices/*"))
	for _, dev := range devices {
		if !strings.HasPrefix(line(dev, "class"), ethernet) {
			continue
		}
		c := Card{Address: filepath.Base(dev), Driver: linked(dev, "driver"), Group: linked(dev, "iommu_group"), Node: -1,
			ID: strings.TrimPrefix(line(dev, "vendor"), "0x") + ":" + strings.TrimPrefix(line(dev, "device"), "0x")}
		for _, at := range []string{"net/*", "virtio*/net/*"} {
			if netdevs, _ := filepath.Glob(filepath.Join(dev, at)); len(netdevs) > 0 {
				c.Interface = filepath.Base(netdevs[0])
			}
		}
		if n, err := strconv.Atoi(line(dev, "numa_node")); err == nil {
			c.Node = n
		}
		c.Others = others(dev)
		if c.Driver == vfio && c.Group != "" {
			c.File = "/dev/vfio/" + c.Group
			c.Refused = unix.Faccessat(unix.AT_FDCWD, c.File, unix.R_OK|unix.W_OK, unix.AT_EACCESS)
		}
		cards = append(cards, c)
	}
	return cards
}

// others are the devices in dev's IOMMU group that a kernel driver holds: a group can only be handed to a program
// as a whole. Bridges don't count.
func others(dev string) (out []string) {
	const bridge = "0x0604"
	members, _ := filepath.Glob(filepath.Join(dev, "iommu_group/devices/*"))
	for _, m := range members {
		driver := linked(m, "driver")
		if filepath.Base(m) != filepath.Base(dev) && driver != "" && driver != vfio &&
			!strings.HasPrefix(line(m, "class"), bridge) {
			out = append(out, filepath.Base(m)+" ("+driver+")")
		}
	}
	return out
}

// line is the content of a file in sysfs, "" if there is none.
func line(dir, name string) string {
	b, _ := os.ReadFile(filepath.Join(dir, name))
	return strings.TrimSpace(string(b))
}

// linked is the last part of a symbolic link's target, "" if there is none.
func linked(dir, name string) string {
	target, err := os.Readlink(filepath.Join(dir, name))
	if err != nil {
		return ""
	}
	return filepath.Base(target)
}

// bind is the command, for root, that hands the card to vfio-pci; back is the command that returns it to its kernel
// driver.
func (c *Card) bind() string { return "modprobe vfio-pci; " + c.override(vfio) }
func (c *Card) back() string { return c.override("") }

func (c *Card) override(driver string) string {
	dev := "/sys/bus/pci/devices/" + c.Address
	commands := fmt.Sprintf("echo %s >%s/driver_override; ", driver, dev)
	if c.Driver != "" {
		commands += fmt.Sprintf("echo %s >%s/driver/unbind; ", c.Address, dev)
	}
	return commands + fmt.Sprintf("echo %s >/sys/bus/pci/drivers_probe", c.Address)
}

// cards examines each card, and checks the cards of the configuration's ports for all that vfio-pci and DPDK need.
func cards(f *Facts) (out []Finding) {
	ports := map[string]*config.Port{}
	if f.Config != nil {
		for i := range f.Config.Ports {
			if p := &f.Config.Ports[i]; p.PCIAddress != "" {
				ports[p.PCIAddress] = p
			}
		}
	}
	for i := range f.Cards {
		c := &f.Cards[i]
		if p := ports[c.Address]; p != nil {
			out = append(out, c.asPort(f, p)...)
		} else {
			out = append(out, c.spare(f))
		}
		delete(ports, c.Address)
	}
	for _, address := range slices.Sorted(maps.Keys(ports)) {
		out = append(out, problem("port "+ports[address].Name, "lspci -D shows the addresses", "there is no network card %s",
			address))
	}
	return out
}

// spare is the finding for a card that no port of the configuration uses.
func (c *Card) spare(f *Facts) Finding {
	about := "card " + c.Address
	switch {
	case slices.Contains(userspaceDrivers, c.Driver):
		return ok(about, "%s, bound to %s: \"pci_address\": \"%s\" gives it to urdmad; back to the kernel, as root: %s", c.ID,
			c.Driver, c.Address, c.back())
	case slices.Contains(sharedDrivers, c.Driver):
		return ok(about, "%s, driver %s, which DPDK and the kernel use together: \"pci_address\": \"%s\" is all", c.ID,
			c.Driver, c.Address)
	}
	if !f.Commands {
		return ok(about, "%s, %s; urdma doctor --cards has the command that hands it to urdmad", c.ID, c.holder(f))
	}
	return ok(about, "%s, %s; for urdmad, as root: %s", c.ID, c.kernels(f), c.bind())
}

// holder describes the driver and interface of a card in the kernel.
func (c *Card) holder(f *Facts) string {
	if c.Driver == "" {
		return "bound to no driver"
	}
	text := "driver " + c.Driver
	if c.Interface == "" {
		return text
	}
	text += ", interface " + c.Interface
	for _, a := range f.addresses(c.Interface) {
		text += " " + a.String()
	}
	return text
}

// kernels describes the same, with what the kernel loses if urdmad gets the card.
func (c *Card) kernels(f *Facts) string {
	text := c.holder(f)
	if c.Driver == "" || c.Interface == "" {
		return text
	}
	text += ", which the kernel loses"
	if len(f.addresses(c.Interface)) == 0 {
		return text
	}
	text += ": connections through it end, ssh too"
	for _, i := range f.Interfaces {
		if i.Name != c.Interface && slices.ContainsFunc(i.Addresses, isOfNetwork) {
			return text
		}
	}
	return text + ", and nothing else connects this machine"
}

// isOfNetwork reports whether other hosts may reach an address.
func isOfNetwork(p netip.Prefix) bool {
	return !p.Addr().IsLoopback() && !p.Addr().IsLinkLocalUnicast()
}

// addresses returns those of an interface.
func (f *Facts) addresses(name string) []netip.Prefix {
	for _, i := range f.Interfaces {
		if i.Name == name {
			return i.Addresses
		}
	}
	return nil
}

// asPort examines a card that a port of the configuration uses.
func (c *Card) asPort(f *Facts, p *config.Port) (out []Finding) {
	about := "port " + p.Name
	switch {
	case !c.Usable():
		return []Finding{problem(about, "as root: "+c.bind(), "card %s is not bound to vfio-pci: %s", c.Address,
			c.kernels(f))}
	case c.Driver != vfio:
		return []Finding{ok(about, "card %s, driver %s", c.Address, c.Driver)}
	case c.Group == "":
		return []Finding{note(about, "intel_iommu=on, or amd_iommu=on, on the kernel's command line, and the IOMMU on in "+
			"the firmware; "+
			"without one: echo 1 >/sys/module/vfio/parameters/enable_unsafe_noiommu_mode, before the card is bound, and "+
			"CAP_SYS_RAWIO and physical addresses for urdmad",
			"card %s is in no IOMMU group: it can write all of the machine's memory", c.Address)}
	}
	if len(c.Others) > 0 {
		out = append(out, problem(about, "bind these to vfio-pci too, or unbind them, or plug the card elsewhere",
			"IOMMU group %s of card %s has devices in use by the kernel: %s",
			c.Group, c.Address, strings.Join(c.Others, ", ")))
	}
	if c.Refused != nil && f.Daemon == nil {
		out = append(out, problem(about,
			"usermod --append --groups urdma-nic with the user, who then logs in again; the package's udev rule gives that "+
				"group network cards that are bound to vfio-pci",
			"a urdmad started from here may not open %s: %v", c.File, c.Refused))
	}
	if f.MemLock < cardMemory && f.Capability&(1<<capIPCLock) == 0 {
		out = append(out, problem(about,
			"LimitMEMLOCK=infinity in the unit; for a shell a line \"USER - memlock unlimited\" in /etc/security/limits.d/; "+
				"or CAP_IPC_LOCK",
			"vfio-pci locks the memory of DPDK, some 200 MB a port, and the limit is %d bytes", f.MemLock))
	}
	for _, w := range f.Config.Workers {
		if node, known := f.Nodes[w.Core]; known && c.Node >= 0 && node != c.Node {
			out = append(out, note(about, "a core of the card's node for workers[].core; lscpu lists them",
				"card %s is on NUMA node %d, worker core %d on node %d", c.Address, c.Node, w.Core, node))
		}
	}
	if len(out) == 0 {
		out = []Finding{ok(about, "card %s, %s, bound to %s, IOMMU group %s; back to the kernel, as root: %s", c.Address,
			c.ID, c.Driver, c.Group, c.back())}
	}
	return out
}

// cardMemory is the most memory that a DPDK port locks; package dpdk sizes it.
const cardMemory = 256 << 20

// nodes maps processor cores to NUMA nodes.
func nodes(sys string) map[int]int {
	out := map[int]int{}
	found, _ := filepath.Glob(filepath.Join(sys, "devices/system/node/node[0-9]*/cpu[0-9]*"))
	for _, path := range found {
		node, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(filepath.Dir(path)), "node"))
		core, err2 := strconv.Atoi(strings.TrimPrefix(filepath.Base(path), "cpu"))
		if err == nil && err2 == nil {
			out[core] = node
		}
	}
	return out
}
