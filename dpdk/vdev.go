package dpdk

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"urdma/dpdk/netdev"
)

// prepared is a device before it is probed.
type prepared struct {
	args     string // the device string with defaults added
	mtu      int    // 0: the device's own
	borrowed *borrowed
	minRoom  int        // bytes that a pool buffer needs
	warning  string     // a deficiency to be logged
	iface    string     // network interface of af_xdp
	program  netdev.XDP // the XDP program that it had before
	loads    bool       // the device string names a program that the driver loads
}

// prepare adds the driver options that our MTU and load need, unless the user has given them.
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
		d.undoBorrow()
	}
	return d, err
}

// A frame of a packet ring has this many bytes besides the Ethernet frame (packet(7), TPACKET_V2: header,
// address, alignment), rounded up; and the largest frame that leaves room in a pool buffer, whose size has 16
// bits.
const (
	packetRingOverhead = 80
	maxFrameSize       = 32768
)

// afPacket sizes the packet rings for the MTU. DPDK's af_packet reports 1,518 bytes as its longest frame, so
// ethdev refuses a larger MTU; but the driver carries everything that fits a ring frame, so the MTU is not
// set through ethdev.
func (d *prepared) afPacket(s *Spec, args map[string]string) error {
	if err := s.oneQueue(args, "qpairs"); err != nil {
		return err
	}
	if err := d.borrow(s, args["iface"], maxMTU); err != nil {
		return err
	}
	ring := packetRing{frame: 2048, block: 65536, frames: 1024}
	if d.mtu+packetRingOverhead > ring.frame {
		ring = packetRing{frame: 9728, block: 77824, frames: 512}
	}
	if args["framecnt"] == "" {
		d.fitRing(&ring)
	}
	for _, kv := range ring.arguments() {
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

// oneQueue refuses more queues than are read, because the frames of the others would be lost.
func (s *Spec) oneQueue(args map[string]string, name string) error {
	if n, given := args[name]; given && n != "1" {
		return &SettingError{Port: s.label(), Setting: "vdev", Found: name + "=" + n,
			Allowed: name + "=1: a port has one queue"}
	}
	return nil
}

// packetRing is the size of a packet socket's rings, one in each direction, in bytes.
type packetRing struct{ frame, block, frames int }

func (r *packetRing) arguments() [][2]string {
	return [][2]string{{"framesz", strconv.Itoa(r.frame)}, {"blocksz", strconv.Itoa(r.block)},
		{"framecnt", strconv.Itoa(r.frames)}, {"qpairs", "1"}}
}

// fewestFrames is the smallest size to which a ring is reduced.
const fewestFrames = 64

// fitRing reduces the rings, which the driver locks, to the size that RLIMIT_MEMLOCK allows: it is 8 MiB on
// many machines, and jumbo frames need 10.
func (d *prepared) fitRing(r *packetRing) {
	whole := r.frames
	for r.frames > fewestFrames && !canLock(2*r.frames*r.frame) {
		r.frames /= 2
	}
	if r.frames < whole {
		d.warning = fmt.Sprintf("the limit of locked memory (RLIMIT_MEMLOCK) leaves room for packet rings of %d frames, "+
			"not %d; bursts may be lost", r.frames, whole)
	}
}

// canLock tries whether this process may lock that much more memory.
func canLock(bytes int) bool {
	b, err := unix.Mmap(-1, 0, bytes, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_LOCKED)
	if err != nil {
		return false
	}
	unix.Munmap(b)
	return true
}

// The kernel requires AF_XDP chunks of 2,048 bytes up to a page, and DPDK's chunk is a whole pool element:
// buffer, headroom and 192 bytes of headers.
const (
	xdpMinRoom = 2048
	xdpMaxMTU  = 3500
)

func (d *prepared) afXDP(s *Spec, args map[string]string) error {
	if err := s.oneQueue(args, "queue_count"); err != nil {
		return err
	}
	if s.MTU > xdpMaxMTU {
		return &SettingError{Port: s.label(), Setting: "mtu", Found: s.MTU,
			Allowed: fmt.Sprintf("at most %d with af_xdp, whose chunks are at most a page; or use af_packet", xdpMaxMTU)}
	}
	d.minRoom = xdpMinRoom
	d.iface, d.loads = args["iface"], args["xdp_prog"] != ""
	err := d.borrow(s, d.iface, xdpMaxMTU)
	if err == nil {
		d.borrowed.xdp = true
		d.program, err = d.borrowed.dev.XDP()
	}
	return err
}

// lookAgain finds the XDP program of a process that has attached to the interface since prepare looked. If a
// queue's setup has failed the program is not ours, unless the device string names one.
func (d *prepared) lookAgain() {
	if d.program.ID == 0 && d.borrowed != nil && d.borrowed.xdp && !d.loads {
		d.program, _ = d.borrowed.dev.XDP() // if there is none now, there was none before
	}
}

// busy reports whether the interface's queue, whose setup has failed, is another process's. If that one has removed
// its program and ended, only errno shows that the kernel has not yet freed the queue: it is that of bind(2), which the
// driver does not return.
func (d *prepared) busy(errno error) bool {
	return d.program.ID != 0 || d.borrowed != nil && d.borrowed.xdp && errors.Is(errno, unix.EBUSY)
}

// advice returns the usual remedy if a device can't be opened.
func advice(device string) string {
	driver := driverOf(device)
	switch {
	case driver == "net_af_packet":
		return "check that the interface exists in this network namespace, and that the process has CAP_NET_RAW and " +
			"CAP_NET_ADMIN"
	case driver == "net_af_xdp":
		return "check that the interface exists in this network namespace, that its driver takes XDP programs and no " +
			"other process uses it so, and that the process has CAP_NET_RAW, CAP_NET_ADMIN, CAP_SYS_ADMIN and CAP_IPC_LOCK"
	case driver == "net_tap":
		return "check that /dev/net/tun can be opened and that the process has CAP_NET_ADMIN"
	case driver == "net_memif":
		return "use our own driver instead: \"memif,role=…,socket=…\"; with net_memif remove a stale socket first"
	case strings.HasPrefix(driver, "net_"):
		return "check the driver's name and arguments, and that Debian's package for it (librte-net-…) is installed"
	default:
		return "urdma doctor shows the cards, and the command that binds one to vfio-pci"
	}
}

// driverOf returns the driver's name in a device string; "eth_" is an older prefix of "net_".
func driverOf(device string) string {
	name, _, _ := strings.Cut(device, ",")
	name = strings.TrimRight(name, "0123456789")
	if old, ok := strings.CutPrefix(name, "eth_"); ok {
		return "net_" + old
	}
	return name
}
