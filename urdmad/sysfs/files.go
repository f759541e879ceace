package sysfs

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"strings"

	"urdma/verbs/personality"
)

// Values that ibv_query_port(3) also returns (verbs/lib/device/query.c).
const (
	canConnect = 1 << 16 // IBV_PORT_CM_SUP
	ipGIDs     = 1 << 26 // IBV_PORT_IP_BASED_GIDS
)

// Rate is the rate of every port (verbs/lib/device/query.c), because the real rate is unknown.
const Rate = "40 Gb/sec (4X QDR)"

// The kernel's device numbers of /dev/infiniband/uverbs0, umad0 and issm0
// (Documentation/admin-guide/devices.txt); verbs/lib/interpose/paths.c has them too.
const (
	uverbsMajor = 231
	uverbsMinor = 192
	umadMinor   = 0
	issmMinor   = 64
)

// shared returns the files that are the same for all devices: the versions of the kernel's
// interfaces, unchanged for years.
func shared() map[string]string {
	return map[string]string{
		"class/infiniband_verbs/abi_version": "6",
		"class/infiniband_mad/abi_version":   "5",
		"class/misc/rdma_cm/abi_version":     "4",
		"dev/infiniband/rdma_cm":             "",
	}
}

// files returns the paths and contents of port i's files without its counters; i counts the ports
// of all devices. With the first port of a device come the device's files.
func (d *Device) files(i int) map[string]string {
	files := d.ports()
	maps.Copy(files, d.link())
	maps.Copy(files, d.management(i))
	if d.Number == 1 {
		own := personality.Own
		own.Firmware, own.NodeDescription = d.Firmware, d.Port.Device
		own.HCAType, own.BoardID = "urdma", "urdma-"+d.Driver
		maps.Copy(files, below("class/infiniband/"+d.Port.Device, d.device(&own)))
		maps.Copy(files, below("class/infiniband/"+d.Port.Device+"/device", bus()))
		maps.Copy(files, below(verbsClass(i), d.verbs(i)))
		maps.Copy(files, below(verbsClass(i)+"/device", bus()))
		files[verbsNode(i)] = ""
	}
	return files
}

// below returns files whose names are relative to a directory.
func below(dir string, files map[string]string) map[string]string {
	all := make(map[string]string, len(files))
	for name, text := range files {
		all[dir+"/"+name] = text
	}
	return all
}

// device returns the files of a device in its directory of class/infiniband.
func (d *Device) device(p *personality.Profile) map[string]string {
	files := map[string]string{
		"node_type":      d.Personality.NodeTypeText,
		"node_guid":      groups(d.GUID[:]),
		"sys_image_guid": groups(d.GUID[:]),
		"node_desc":      p.NodeDescription,
		"fw_ver":         p.Firmware,
		"hw_rev":         fmt.Sprint(p.HardwareVersion),
	}
	if p.HCAType != "" {
		files["hca_type"] = p.HCAType
	}
	if p.BoardID != "" {
		files["board_id"] = p.BoardID
	}
	return files
}

// verbsNode is the entry of /dev/infiniband/uverbs<i> in a listing of its directory.
func verbsNode(i int) string { return fmt.Sprintf("dev/infiniband/uverbs%d", i) }

func verbsClass(i int) string { return fmt.Sprintf("class/infiniband_verbs/uverbs%d", i) }

// verbs returns the files that describe /dev/infiniband/uverbs<i>, in their directory.
func (d *Device) verbs(i int) map[string]string {
	return map[string]string{
		"ibdev":       d.Port.Device,
		"abi_version": "1",
		"dev":         fmt.Sprintf("%d:%d", uverbsMajor, uverbsMinor+i),
	}
}

// management returns the files that describe /dev/infiniband/umad<i> and issm<i>, and their
// entries in a listing of its directory; a port not shown as InfiniBand has none.
func (d *Device) management(i int) map[string]string {
	files := map[string]string{}
	if d.Personality.Name != personality.IB {
		return files
	}
	for kind, minor := range map[string]int{"umad": umadMinor, "issm": issmMinor} {
		node := fmt.Sprint(kind, i)
		dir := "class/infiniband_mad/" + node + "/"
		files["dev/infiniband/"+node] = ""
		files[dir+"ibdev"] = d.Port.Device
		files[dir+"port"] = fmt.Sprint(d.Number)
		files[dir+"dev"] = fmt.Sprintf("%d:%d", uverbsMajor, minor+i)
	}
	return files
}

// bus returns the files of a device on a bus. The device is not near any particular memory.
func bus() map[string]string {
	return map[string]string{
		"numa_node":     "-1",
		"local_cpus":    "",
		"local_cpulist": "",
		"vendor":        fmt.Sprintf("0x%04x", personality.Own.VendorID),
		"device":        fmt.Sprintf("0x%04x", personality.Own.PartID),
		"uevent":        "DRIVER=urdma",
	}
}

func (d *Device) ports() map[string]string {
	port := d.dir()
	lid := fmt.Sprintf("%#x", d.Personality.LID(&d.Is))
	capabilities := uint32(canConnect)
	if d.Personality.Name == personality.RoCE {
		capabilities |= ipGIDs
	}
	files := map[string]string{
		port + "link_layer":     d.Personality.LinkLayerText,
		port + "rate":           Rate,
		port + "lid":            lid,
		port + "sm_lid":         lid,
		port + "sm_sl":          "0",
		port + "lid_mask_count": "0",
		port + "cap_mask":       fmt.Sprintf("0x%08x", capabilities),
		port + "has_smi":        "0",
		port + "pkeys/0":        "0xffff",
	}
	for i, gid := range d.Personality.GIDs(&d.Is) {
		files[fmt.Sprint(port, "gids/", i)] = groups(gid.Value[:])
		files[fmt.Sprint(port, "gid_attrs/types/", i)] = gid.TypeText
		files[fmt.Sprint(port, "gid_attrs/ndevs/", i)] = cmp.Or(d.Interface, d.Port.Device)
	}
	if d.Interface != "" {
		files["class/infiniband/"+d.Port.Device+"/device/net/"+d.Interface+
			"/address"] = net.HardwareAddr(d.Is.MAC[:]).String()
	}
	return files
}

// link returns the files that depend on the port's link.
func (d *Device) link() map[string]string {
	state, physical := "1: DOWN", "3: Disabled"
	if d.Up {
		state, physical = "4: ACTIVE", "5: LinkUp"
	}
	return map[string]string{d.dir() + "state": state, d.dir() + "phys_state": physical}
}

// files returns the files that a subnet manager determines for a port shown as InfiniBand.
func (s *Subnet) files(port string) map[string]string {
	states := [...]string{1: "1: DOWN", 2: "2: INIT", 3: "3: ARMED", 4: "4: ACTIVE"}
	physical := [...]string{2: "2: Polling", 3: "3: Disabled", 5: "5: LinkUp"}
	return map[string]string{
		port + "lid":            fmt.Sprintf("%#x", s.LID),
		port + "sm_lid":         fmt.Sprintf("%#x", s.SMLID),
		port + "sm_sl":          fmt.Sprint(s.SMSL),
		port + "lid_mask_count": fmt.Sprint(s.LMC),
		port + "cap_mask":       fmt.Sprintf("0x%08x", s.CapabilityMask),
		port + "has_smi":        "1",
		port + "state":          states[s.State],
		port + "phys_state":     physical[s.Phys],
	}
}

// groups formats bytes as sysfs does for GUIDs and GIDs: four digits, a colon.
func groups(b []byte) string {
	var s strings.Builder
	for i := 0; i < len(b); i += 2 {
		if i > 0 {
			s.WriteByte(':')
		}
		fmt.Fprintf(&s, "%02x%02x", b[i], b[i+1])
	}
	return s.String()
}
