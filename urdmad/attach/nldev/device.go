package nldev

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Attributes of devices and ports (enum rdma_nldev_attr).
const (
	attrDevIndex      = 1
	attrDevName       = 2
	attrPortIndex     = 3
	attrCapFlags      = 4
	attrFirmware      = 5
	attrNodeGUID      = 6
	attrImageGUID     = 7
	attrSubnetPrefix  = 8
	attrLID           = 9
	attrSMLID         = 10
	attrLMC           = 11
	attrState         = 12
	attrPhysState     = 13
	attrNodeType      = 14
	attrNetdevIndex   = 50
	attrNetdevName    = 51
	attrNetnsMode     = 66
	attrProtocol      = 67
	attrStatRes       = 75
	attrHWCounters    = 80
	attrHWCounter     = 81
	attrHWCounterName = 82
	attrHWCounterIs   = 83
	attrCopyOnFork    = 93
)

// device is a device's directory in the tree that stands for /sys.
type device struct {
	index uint32
	own   string // its name in a snapshot
	name  string // its name for the program
	dir   string
}

// identity appends what each answer about a device begins with.
func (d *device) identity() attributes {
	return attributes(nil).u32(attrDevIndex, d.index).text(attrDevName, d.name)
}

// asked returns the devices that a request is about: the one that it names, or all.
func (c *Config) asked(r *request) (list []device, err error) {
	for i, own := range c.Devices() {
		if r.has[attrDevIndex] == nil || r.number(attrDevIndex) == uint32(i) {
			name := own
			if i < len(c.names) {
				name = c.names[i]
			}
			list = append(list, device{uint32(i), own, name, filepath.Join(c.Sysfs, "class/infiniband", name)})
		}
	}
	if r.has[attrDevIndex] == nil && !r.dump() || len(list) == 0 {
		return nil, fmt.Errorf("nldev: no device of that index: %w", unix.EINVAL)
	}
	return list, nil
}

// file returns the content of a file of the tree, without the newline.
func file(path ...string) string {
	b, _ := os.ReadFile(filepath.Join(path...))
	return strings.TrimSpace(string(b))
}

// number returns the number with which the content of a file begins: "4: ACTIVE" is 4.
func number(path ...string) uint64 {
	first, _, _ := strings.Cut(file(path...), ":")
	n, _ := strconv.ParseUint(first, 0, 64)
	return n
}

// guid returns a GUID, or the first half of a GID.
func guid(path ...string) uint64 {
	s := strings.ReplaceAll(file(path...), ":", "")
	n, _ := strconv.ParseUint(s[:min(len(s), 16)], 16, 64)
	return n
}

func (d *device) ports() int {
	list, _ := os.ReadDir(filepath.Join(d.dir, "ports"))
	return len(list)
}

func (c *Config) devices(r *request) (list []attributes, err error) {
	devices, err := c.asked(r)
	for _, d := range devices {
		list = append(list, d.identity().u32(attrPortIndex, uint32(d.ports())).u64(attrCapFlags, 0).
			text(attrFirmware, file(d.dir, "fw_ver")).u64(attrNodeGUID, guid(d.dir, "node_guid")).
			u64(attrImageGUID, guid(d.dir, "sys_image_guid")).u8(attrNodeType, uint8(number(d.dir, "node_type"))).
			text(attrProtocol, d.protocol()))
	}
	return list, err
}

// protocol returns the name that the kernel gives the protocol.
func (d *device) protocol() string {
	const rnic = 4
	switch {
	case number(d.dir, "node_type") == rnic:
		return "iw"
	case file(d.dir, "ports/1/link_layer") == "InfiniBand":
		return "ib"
	}
	return "roce"
}

// ports answers with what about says of the port that the request names, or of all ports.
func (c *Config) ports(r *request, about func(d *device, port string) attributes) (list []attributes, err error) {
	devices, err := c.asked(r)
	for _, d := range devices {
		for n := range d.ports() {
			if port := uint32(n + 1); r.has[attrPortIndex] == nil || r.number(attrPortIndex) == port {
				a := about(&d, filepath.Join(d.dir, "ports", fmt.Sprint(port)))
				list = append(list, append(d.identity().u32(attrPortIndex, port), a...))
			}
		}
	}
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("nldev: port %d of device %d: %w", r.number(attrPortIndex), r.number(attrDevIndex), unix.EINVAL)
	}
	return list, err
}

func (c *Config) port(d *device, port string) (a attributes) {
	if d.protocol() == "ib" {
		a = a.u64(attrCapFlags, number(port, "cap_mask")).u64(attrSubnetPrefix, guid(port, "gids/0")).
			u32(attrLID, uint32(number(port, "lid"))).u32(attrSMLID, uint32(number(port, "sm_lid"))).
			u8(attrLMC, uint8(number(port, "lid_mask_count")))
	}
	a = a.u8(attrState, uint8(number(port, "state"))).u8(attrPhysState, uint8(number(port, "phys_state")))
	if netdev := file(port, "gid_attrs/ndevs/0"); netdev != "" && d.protocol() != "ib" {
		a = a.u32(attrNetdevIndex, 0).text(attrNetdevName, netdev)
	}
	return a
}

func (c *Config) counters(_ *device, port string) (a attributes) {
	list, _ := os.ReadDir(filepath.Join(port, "hw_counters"))
	for _, f := range list {
		if f.Name() != "lifespan" { // how often the values change, not a count
			a = a.nested(attrHWCounter, attributes(nil).text(attrHWCounterName, f.Name()).
				u64(attrHWCounterIs, number(port, "hw_counters", f.Name())))
		}
	}
	return attributes(nil).nested(attrHWCounters, a)
}
