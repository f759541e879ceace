package sysfs

import (
	"encoding/binary"
	"fmt"
	"os"
	"strconv"
	"strings"

	"urdma/verbs/personality"
)

// speeds has the texts of current_link_speed, by the link's generation.
var speeds = [...]string{1: "2.5 GT/s PCIe", 2: "5.0 GT/s PCIe", 3: "8.0 GT/s PCIe", 4: "16.0 GT/s PCIe"}

// The file resource has a line for each range of addresses; here all are unused.
const (
	resources   = 13
	noAddresses = "0x0000000000000000 0x0000000000000000 0x0000000000000000"
)

// pciFiles returns the files of a PCI function but config (the kernel's Documentation/ABI/testing/sysfs-bus-pci and
// Documentation/PCI/sysfs-pci.rst).
func pciFiles(p *personality.PCI, address string) map[string]string {
	speed, width := speeds[p.Generation], fmt.Sprint(p.Lanes)
	files := map[string]string{
		"vendor":             fmt.Sprintf("0x%04x", p.Vendor),
		"device":             fmt.Sprintf("0x%04x", p.Device),
		"subsystem_vendor":   fmt.Sprintf("0x%04x", p.SubsystemVendor),
		"subsystem_device":   fmt.Sprintf("0x%04x", p.SubsystemDevice),
		"class":              fmt.Sprintf("0x%06x", p.Class),
		"revision":           fmt.Sprintf("0x%02x", p.Revision),
		"current_link_speed": speed,
		"current_link_width": width,
		"max_link_speed":     speed,
		"max_link_width":     width,
		"numa_node":          numaNode(),
		"enable":             "1",
		"irq":                "0",
		"resource":           strings.Repeat(noAddresses+"\n", resources-1) + noAddresses,
		"uevent": fmt.Sprintf("DRIVER=%s\nPCI_CLASS=%X\nPCI_ID=%04X:%04X\nPCI_SUBSYS_ID=%04X:%04X\nPCI_SLOT_NAME=%s",
			p.Driver, p.Class, p.Vendor, p.Device, p.SubsystemVendor, p.SubsystemDevice, address),
	}
	for name, text := range onlineCPUs("local_cpus", "local_cpulist") {
		files[name] = text
	}
	return files
}

// configSpace returns the 256 bytes of the function's configuration space, as far as libpciaccess and lspci read it:
// the header of type 0 (PCI Local Bus Specification), and the PCI Express capability with the link.
func configSpace(p *personality.PCI) string {
	const (
		memoryAndMaster = 0x0006
		hasCapabilities = 0x0010
		express         = 0x40 // place of the capability
		version2        = 2
	)
	var b [256]byte
	le := binary.LittleEndian
	le.PutUint16(b[0x00:], p.Vendor)
	le.PutUint16(b[0x02:], p.Device)
	le.PutUint16(b[0x04:], memoryAndMaster)
	le.PutUint16(b[0x06:], hasCapabilities)
	le.PutUint32(b[0x08:], p.Class<<8|uint32(p.Revision))
	le.PutUint16(b[0x2c:], p.SubsystemVendor)
	le.PutUint16(b[0x2e:], p.SubsystemDevice)
	b[0x34] = express
	b[express] = 0x10 // PCI Express; no capability follows
	le.PutUint16(b[express+0x02:], version2)
	link := uint16(p.Lanes)<<4 | uint16(p.Generation)
	le.PutUint32(b[express+0x0c:], uint32(link)) // link capabilities
	le.PutUint16(b[express+0x12:], link)         // link status
	return string(b[:])
}

// numaNode is the machine's only node, or -1 for none: urdmad is not near any particular memory.
func numaNode() string {
	if read("/sys/devices/system/node/online") == "0" {
		return "0"
	}
	return "-1"
}

// onlineCPUs returns files with all CPUs that are online, as a mask and as a list.
func onlineCPUs(mask, list string) map[string]string {
	online := read("/sys/devices/system/cpu/online")
	return map[string]string{mask: cpuMask(online), list: online}
}

func read(path string) string {
	b, _ := os.ReadFile(path)
	return strings.TrimSpace(string(b))
}

// cpuMask converts a list such as "0-3,8" to hexadecimal words of 32 bits with commas between them, the highest first.
func cpuMask(list string) string {
	var words []uint32
	for _, r := range strings.Split(list, ",") {
		from, to, isRange := strings.Cut(r, "-")
		if !isRange {
			to = from
		}
		first, err1 := strconv.ParseUint(from, 10, 16)
		last, err2 := strconv.ParseUint(to, 10, 16)
		if err1 != nil || err2 != nil {
			return ""
		}
		for cpu := first; cpu <= last; cpu++ {
			for uint64(len(words)) <= cpu/32 {
				words = append(words, 0)
			}
			words[cpu/32] |= 1 << (cpu % 32)
		}
	}
	text := fmt.Sprintf("%x", words[len(words)-1])
	for i := len(words) - 2; i >= 0; i-- {
		text += fmt.Sprintf(",%08x", words[i])
	}
	return text
}
