package dpdk

import (
	"fmt"
	"strconv"
	"strings"
)

// prepared is a device as it will be probed.
type prepared struct {
	args     string // the device string with defaults added
	mtu      int    // 0: the device's own
	borrowed *borrowed
	minRoom  int // bytes a pool buffer must have
}

// prepare adds what a driver needs for our MTU and load where the user gave
// nothing.
func (s *Spec) prepare() (d prepared, err error) {
	d = prepared{args: s.device(), mtu: s.MTU}
	if s.PCI != "" {
		return d, nil
	}
	args, err := arguments(s.Vdev)
	if err != nil {
		return d, fmt.Errorf("dpdk: port %q: %s: %w", s.label(), s.Vdev, err)
	}
	switch {
	case driverOf(s.Vdev) == "net_af_packet":
		err = d.afPacket(s, args)
	case driverOf(s.Vdev) == "net_af_xdp":
		err = d.afXDP(s, args)
	}
	if err != nil {
		d.giveBack()
	}
	return d, err
}

// What a frame of a packet ring holds besides the Ethernet frame (packet(7),
// TPACKET_V2: header, address, alignment), rounded up; and the largest that
// leaves a pool buffer, whose sizes are 16 bits, room for its own needs.
const (
	packetRingOverhead = 80
	maxFrameSize       = 32768
)

// afPacket sizes the packet rings for the MTU. DPDK's af_packet says its longest
// frame is 1,518 bytes, so ethdev refuses a larger MTU, but the driver carries
// whatever fits a ring frame: ethdev is not asked for the MTU.
func (d *prepared) afPacket(s *Spec, args map[string]string) error {
	if err := d.borrow(s, args["iface"], maxMTU); err != nil {
		return err
	}
	ring := [][2]string{{"framesz", "2048"}, {"blocksz", "65536"}, {"framecnt", "1024"}, {"qpairs", "1"}}
	if d.mtu+packetRingOverhead > 2048 {
		ring = [][2]string{{"framesz", "9728"}, {"blocksz", "77824"}, {"framecnt", "512"}, {"qpairs", "1"}}
	}
	for _, kv := range ring {
		if args[kv[0]] == "" {
			args[kv[0]] = kv[1]
			d.args += "," + kv[0] + "=" + kv[1]
		}
	}
	framesz, err := strconv.Atoi(args["framesz"])
	if err != nil || framesz < d.mtu+packetRingOverhead || framesz > maxFrameSize {
		return &SettingError{Port: s.label(), Setting: "vdev", Found: "framesz=" + args["framesz"],
			Allowed: fmt.Sprintf("a framesz from %d, which MTU %d needs, to %d", d.mtu+packetRingOverhead, d.mtu, maxFrameSize)}
	}
	d.minRoom = framesz
	return nil
}

// The kernel takes AF_XDP chunks of 2,048 bytes to a page, and DPDK's chunk is a
// whole pool element: buffer, headroom and 192 bytes of headers.
const (
	xdpMinRoom = 2048
	xdpMaxMTU  = 3500
)

func (d *prepared) afXDP(s *Spec, args map[string]string) error {
	if s.MTU > xdpMaxMTU {
		return &SettingError{Port: s.label(), Setting: "mtu", Found: s.MTU,
			Allowed: fmt.Sprintf("at most %d with af_xdp, whose chunks are at most a page; or use af_packet", xdpMaxMTU)}
	}
	d.minRoom = xdpMinRoom
	return d.borrow(s, args["iface"], xdpMaxMTU)
}

// advice says what usually helps when a device can't be had.
func advice(device string) string {
	driver := driverOf(device)
	switch {
	case driver == "net_af_packet", driver == "net_af_xdp":
		return "check that the interface exists in this network namespace and is up, and that the process has CAP_NET_RAW and CAP_NET_ADMIN (net_af_xdp: CAP_BPF too)"
	case driver == "net_tap":
		return "check that /dev/net/tun can be opened and that the process has CAP_NET_ADMIN"
	case driver == "net_memif":
		return "use our own driver instead: \"memif,role=…,socket=…\"; with net_memif remove a stale socket first"
	case strings.HasPrefix(driver, "net_"):
		return "check the driver's name and arguments, and that Debian's package for it (librte-net-…) is installed"
	default:
		return "check the address with dpdk-devbind.py --status, and that the device is bound to vfio-pci"
	}
}

// driverOf is the driver's name in a device string; "eth_" is its older form.
func driverOf(device string) string {
	name, _, _ := strings.Cut(device, ",")
	name = strings.TrimRight(name, "0123456789")
	if old, ok := strings.CutPrefix(name, "eth_"); ok {
		return "net_" + old
	}
	return name
}
