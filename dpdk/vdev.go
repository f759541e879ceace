package dpdk

import (
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// prepared is a device as it will be probed.
type prepared struct {
	args       string // the device string with defaults added
	mtu        int    // 0: the device's own
	mtuOutside bool   // the kernel interface has this MTU; ethdev is not asked for it
	minRoom    int    // bytes a pool buffer must have
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
	case strings.HasPrefix(s.Vdev, "net_af_packet"):
		err = d.afPacket(s, args)
	case strings.HasPrefix(s.Vdev, "net_af_xdp"):
		err = d.afXDP(s)
	}
	return d, err
}

// What a frame of a packet ring holds besides the Ethernet frame (packet(7),
// TPACKET_V2: header, address, alignment), rounded up.
const packetRingOverhead = 80

// afPacket sizes the packet rings for the MTU. DPDK 22.11's af_packet says its
// longest frame is 1,518 bytes, so ethdev refuses a larger MTU, but the driver
// carries whatever fits a ring frame: the interface's MTU is set here instead.
func (d *prepared) afPacket(s *Spec, args map[string]string) error {
	iface := args["iface"]
	if iface == "" {
		return fmt.Errorf("dpdk: port %q: %s: iface=NAME is missing", s.label(), s.Vdev)
	}
	if now, err := interfaceMTU(iface); err == nil { // a missing interface is DPDK's to report
		if d.mtu == 0 {
			d.mtu = min(now, maxMTU)
		}
		if now < d.mtu {
			if err := setInterfaceMTU(iface, d.mtu); err != nil {
				return fmt.Errorf("dpdk: port %q: interface %s has MTU %d and can't get %d: %w", s.label(), iface, now, d.mtu, err)
			}
		}
	}
	d.mtuOutside = true
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
	if err != nil || framesz < d.mtu+packetRingOverhead {
		return fmt.Errorf("dpdk: port %q: framesz=%s is too small for MTU %d, which needs %d", s.label(), args["framesz"], d.mtu, d.mtu+packetRingOverhead)
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

func (d *prepared) afXDP(s *Spec) error {
	if s.MTU > xdpMaxMTU {
		return fmt.Errorf("dpdk: port %q: MTU %d: af_xdp carries at most %d (a chunk is at most a page); use af_packet", s.label(), s.MTU, xdpMaxMTU)
	}
	d.minRoom = xdpMinRoom
	return nil
}

func interfaceMTU(name string) (int, error) {
	ifr, fd, err := interfaceRequest(name)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFMTU, ifr); err != nil {
		return 0, err
	}
	return int(ifr.Uint32()), nil
}

func setInterfaceMTU(name string, mtu int) error {
	ifr, fd, err := interfaceRequest(name)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	ifr.SetUint32(uint32(mtu))
	return unix.IoctlIfreq(fd, unix.SIOCSIFMTU, ifr)
}

func interfaceRequest(name string) (*unix.Ifreq, int, error) {
	ifr, err := unix.NewIfreq(name)
	if err != nil {
		return nil, -1, err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	return ifr, fd, err
}

// advice says what usually helps when a device can't be had.
func advice(device string) string {
	driver := strings.TrimRight(strings.SplitN(device, ",", 2)[0], "0123456789")
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
