package personality

import (
	"cmp"
	"fmt"

	"urdma/verbs/abi"
)

// Profile is a row of the table of adapters as which devices can be shown. It has names and numbers, which programs
// and scripts compare, and no capability: limits, flags and functions stay urdma's.
type Profile struct {
	Name      string // in urdma.json and URDMA_PROFILE, at most 15 bytes; "" in Own
	Transport string // name of its personality
	Device    string // device names, with the device's number in place of %d

	// ibv_query_device(3)
	VendorID, PartID, HardwareVersion uint32
	Firmware                          string

	// Files in /sys/class/infiniband/NAME. The kernel's driver does not have those whose text is empty; an empty
	// node_desc is one.
	NodeDescription, HCAType, BoardID string

	PCI PCI
}

// PCI is the function of a PCI device, as sysfs and its configuration space show it.
type PCI struct {
	Vendor, Device, SubsystemVendor, SubsystemDevice uint16
	Class                                            uint32 // 24 bits, as in the file class
	Revision, Function                               byte
	Driver                                           string
	Generation, Lanes                                byte // of the link: 3 is 8 GT/s, 4 is 16 GT/s
}

// PCI classes (PCI Code and ID Assignment Specification).
const (
	classEthernet   = 0x020000
	classInfiniBand = 0x020700
)

// Own is how devices look without a profile. Programs take a vendor ID of 0 for "no device"; a 24-bit ID is a
// manufacturer's OUI. This one, "urd", has the multicast bit set and can't be anybody's.
var Own = Profile{VendorID: 0x757264, PartID: 1, HardwareVersion: 1}

// profiles has the values that the kernel's drivers show for one model of each adapter: a ConnectX-6 VPI with two
// 200 Gb/s ports (MCX653106A-HDAT) in either mode, an E810-CQDA2, a T62100-SO-CR.
var profiles = [...]Profile{
	{Name: "cx6", Transport: RoCE, Device: "mlx5_%d", VendorID: 0x02c9, PartID: 4123, Firmware: "20.41.1000",
		NodeDescription: "MT4123 ConnectX6   Mellanox Technologies", HCAType: "MT4123", BoardID: "MT_0000000225",
		PCI: PCI{Vendor: 0x15b3, Device: 0x101b, SubsystemVendor: 0x15b3, SubsystemDevice: 0x0009, Class: classEthernet,
			Driver: "mlx5_core", Generation: 4, Lanes: 16}},
	{Name: "cx6-ib", Transport: IB, Device: "mlx5_%d", VendorID: 0x02c9, PartID: 4123, Firmware: "20.41.1000",
		NodeDescription: "MT4123 ConnectX6   Mellanox Technologies", HCAType: "MT4123", BoardID: "MT_0000000225",
		PCI: PCI{Vendor: 0x15b3, Device: 0x101b, SubsystemVendor: 0x15b3, SubsystemDevice: 0x0009, Class: classInfiniBand,
			Driver: "mlx5_core", Generation: 4, Lanes: 16}},
	{Name: "e810", Transport: RoCE, Device: "irdma%d", VendorID: 0x8086, PartID: 0x1592, HardwareVersion: 2,
		Firmware: "1.54",
		PCI: PCI{Vendor: 0x8086, Device: 0x1592, SubsystemVendor: 0x8086, SubsystemDevice: 0x0002, Class: classEthernet,
			Revision: 2, Driver: "ice", Generation: 4, Lanes: 16}},
	{Name: "t6", Transport: IWARP, Device: "cxgb4_%d", VendorID: 0x1425, PartID: 0x6408, Firmware: "1.23.4.0",
		NodeDescription: "cxgb4 Chelsio Communications", HCAType: "cxgb4", BoardID: "1425.6408",
		PCI: PCI{Vendor: 0x1425, Device: 0x6408, SubsystemVendor: 0x1425, Class: classEthernet, Function: 4,
			Driver: "cxgb4", Generation: 3, Lanes: 16}},
}

// Profiles returns the table. The caller must not change it.
func Profiles() []Profile { return profiles[:] }

// ProfileNames returns the names of the profiles.
func ProfileNames() []string {
	names := make([]string, len(profiles))
	for i := range profiles {
		names[i] = profiles[i].Name
	}
	return names
}

// ProfileNamed returns the profile with a name, Own for "", or nil.
func ProfileNamed(name string) *Profile {
	if name == "" {
		return &Own
	}
	for i := range profiles {
		if profiles[i].Name == name {
			return &profiles[i]
		}
	}
	return nil
}

// DeviceName returns the name of device n, counted from 0. own is its name without a profile.
func (p *Profile) DeviceName(n int, own string) string {
	if p.Device == "" {
		return own
	}
	return fmt.Sprintf(p.Device, n)
}

// Describe fills in the fields of the description of device n, counted from 0, that depend on its profile. own is its
// name, and version its firmware's, without a profile.
func (p *Profile) Describe(n int, own, version string, d *abi.Device) {
	d.VendorID, d.VendorPartID, d.HwVer = p.VendorID, p.PartID, p.HardwareVersion
	copy(d.Name[:len(d.Name)-1], p.DeviceName(n, own))
	copy(d.FwVer[:len(d.FwVer)-1], cmp.Or(p.Firmware, version))
	copy(d.Profile[:len(d.Profile)-1], p.Name)
}

// PCIDomain is the PCI domain of the devices of a profile. No device of the machine has it, so that paths with it are
// urdma's (verbs/lib/interpose/paths.c).
const PCIDomain = 0x7572

// PCIAddress returns the bus and the address of device n, counted from 0. Each of the first 255 devices has a bus of
// its own.
func (p *Profile) PCIAddress(n int) (bus, address string) {
	const buses = 0xff
	bus = fmt.Sprintf("%04x:%02x", PCIDomain, n%buses+1)
	return bus, fmt.Sprintf("%s:%02x.%d", bus, n/buses, p.PCI.Function)
}
