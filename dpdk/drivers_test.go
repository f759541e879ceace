package dpdk

import (
	"log/slog"
	"net"
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"urdma/dpdk/port/porttest"
)

// TestTapConformance runs the suite between a tap port and af_packet on the
// kernel's end of it.
func TestTapConformance(t *testing.T) {
	if ranInNamespace(t) {
		return
	}
	porttest.Run(t, func(t *testing.T) *porttest.Pair {
		tap := open(t, Spec{Vdev: "net_tap0,iface=utap0", MTU: 1500})
		ip(t, "link", "set", "utap0", "up")
		kernel := open(t, Spec{Vdev: "net_af_packet0,iface=utap0", MTU: 1500})
		waitUp(t, tap[0], kernel[0])
		return &porttest.Pair{A: kernel[0], B: tap[0], Step: pause, Foreign: true, Lossy: true}
	})
}

// TestAfXDPConformance runs the suite between af_xdp and af_packet over a veth
// pair.
func TestAfXDPConformance(t *testing.T) {
	if ranInNamespace(t) {
		return
	}
	porttest.Run(t, func(t *testing.T) *porttest.Pair {
		ip(t, "link", "add", "va", "type", "veth", "peer", "name", "vb")
		t.Cleanup(func() { ip(t, "link", "del", "va") })
		ip(t, "link", "set", "va", "up")
		ip(t, "link", "set", "vb", "up")
		p := open(t, Spec{Vdev: "net_af_packet0,iface=vb", MTU: 1500}, Spec{Vdev: "net_af_xdp0,iface=va", MTU: 1500})
		waitUp(t, p...)
		return &porttest.Pair{A: p[0], B: p[1], Step: pause, Foreign: true, Lossy: true, Interrupts: true}
	})
}

// TestAfPacketBesideFanoutGroup: a process with another pid has a group with the id
// that the driver would take for this interface, pid ^ index.
func TestAfPacketBesideFanoutGroup(t *testing.T) {
	if ranInNamespace(t) {
		return
	}
	pairOfVeth(t)
	index := map[string]int{}
	for _, name := range []string{"va", "vb"} {
		i, err := net.InterfaceByName(name)
		if err != nil {
			t.Fatal(err)
		}
		index[name] = i.Index
	}
	all := uint16(unix.ETH_P_ALL>>8 | unix.ETH_P_ALL<<8&0xff00) // network byte order
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, int(all))
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: index["vb"]}); err != nil {
		t.Fatal(err)
	}
	group := (os.Getpid()^index["va"])&0xffff | (unix.PACKET_FANOUT_HASH|unix.PACKET_FANOUT_FLAG_DEFRAG|unix.PACKET_FANOUT_FLAG_ROLLOVER)<<16
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_FANOUT, group); err != nil {
		t.Fatal(err)
	}
	waitUp(t, open(t, Spec{Vdev: "net_af_packet0,iface=va"})...)
}

// TestTapWithoutRawSockets: CAP_NET_ADMIN is all that tap needs.
func TestTapWithoutRawSockets(t *testing.T) {
	if ranInNamespace(t) {
		return
	}
	result := make(chan error)
	go func() { // its thread, which has less than the others, ends with it
		runtime.LockOSThread()
		result <- tapWith(unix.CAP_NET_ADMIN, testLog(t))
	}()
	if err := <-result; err != nil {
		t.Error(err)
	}
}

// tapWith opens and closes a tap port on a thread that has one capability.
func tapWith(capability uint, log *slog.Logger) error {
	h := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	one := [2]unix.CapUserData{{Effective: 1 << capability, Permitted: 1 << capability}}
	if err := unix.Capset(&h, &one[0]); err != nil {
		return err
	}
	_, closeAll, err := OpenPorts([]Spec{{Vdev: "net_tap0,iface=utap0"}}, ealTestArgs, log)
	if err != nil {
		return err
	}
	return closeAll()
}
