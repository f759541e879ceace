package dpdk

import (
	"bytes"
	"log/slog"
	"net"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"urdma/dpdk/port"
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

// TestAfPacketBesideFanoutGroup: another process has a fanout group with the id that the driver computes for
// this interface, pid ^ index.
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
	group := (os.Getpid()^index["va"])&0xffff |
		(unix.PACKET_FANOUT_HASH|unix.PACKET_FANOUT_FLAG_DEFRAG|unix.PACKET_FANOUT_FLAG_ROLLOVER)<<16
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
	go func() { // a thread of its own with fewer capabilities, which ends with the goroutine
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

// TestVLAN runs the suite between two ports of VLAN 100, whose frames are tagged on the wire; the port does
// not receive frames of other VLANs or without a tag.
func TestVLAN(t *testing.T) {
	if ranInNamespace(t) {
		return
	}
	pairOfVeth(t)
	porttest.Run(t, func(t *testing.T) *porttest.Pair {
		p := open(t, Spec{Vdev: "net_af_packet0,iface=va", VLAN: 100}, Spec{Vdev: "net_af_packet1,iface=vb", VLAN: 100})
		waitUp(t, p...)
		return &porttest.Pair{A: p[0], B: p[1], Step: pause, Foreign: true, Lossy: true}
	})
	p := open(t, Spec{Vdev: "net_af_packet0,iface=va", VLAN: 100})[0]
	waitUp(t, p)
	addresses := []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 9}
	frame := func(parts ...[]byte) []byte {
		return append(slices.Concat(append([][]byte{addresses}, parts...)...), make([]byte, 60)...)
	}
	ours, plain := []byte{0x81, 0x00, 0xe0, 0x64}, []byte{0x88, 0xb5} // with a priority; a private EtherType
	send := rawSocket(t, "vb")
	for _, b := range [][]byte{frame(plain, []byte("none")), frame([]byte{0x81, 0, 0, 0x65}, plain, []byte("101")),
		frame(ours, plain, []byte("100"))} {
		if err := send(b); err != nil {
			t.Fatal(err)
		}
	}
	if b := next(t, p.Queue(0)); !bytes.Equal(b, frame(plain, []byte("100"))) {
		t.Errorf("received %x", b)
	}
	var pk [1]port.Packet
	// opened only now: it would have received its own host's frames
	q, wire := p.Queue(0), open(t, Spec{Vdev: "net_af_packet1,iface=vb"})[0]
	waitUp(t, wire)
	if q.Alloc(pk[:]) != 1 {
		t.Fatal("no buffer")
	}
	pk[0].Data = pk[0].Data[:copy(pk[0].Data, frame(plain))]
	if q.Tx(pk[:]) != 1 {
		t.Fatal("not sent")
	}
	q.Flush()
	if b := next(t, wire.Queue(0)); !bytes.Equal(b, frame([]byte{0x81, 0, 0, 100}, plain)) {
		t.Errorf("on the wire is %x", b)
	}
}

// fromTest tells the frames of these tests, from the station 02:00:00:00:00:09, from the kernel's own, which come
// from the random address of a tap.
func fromTest(frame []byte) bool {
	return len(frame) >= 12 && bytes.Equal(frame[6:12], []byte{2, 0, 0, 0, 0, 9})
}

// next waits for a frame from the station 02:00:00:00:00:09.
func next(t *testing.T, q port.Queue) []byte {
	t.Helper()
	var pk [1]port.Packet
	for end := time.Now().Add(time.Minute); time.Now().Before(end); pause() {
		if q.Rx(pk[:]) == 0 {
			continue
		}
		b := bytes.Clone(pk[0].Data)
		q.Free(pk[:])
		if fromTest(b) {
			return b
		}
	}
	t.Fatal("no frame comes")
	return nil
}

// TestVLANOnFullRing: frames that the driver does not accept have no tag afterwards.
func TestVLANOnFullRing(t *testing.T) {
	porttest.Run(t, func(t *testing.T) *porttest.Pair {
		p := open(t, Spec{Name: "ring", Vdev: "net_ring0", MTU: 1500, VLAN: 4094})
		waitUp(t, p...)
		return &porttest.Pair{A: p[0], B: p[0], Step: pause}
	})
}

// TestQueues: a port with two queues receives every frame on one of them, all frames of a flow on the same;
// both queues send.
func TestQueues(t *testing.T) {
	if ranInNamespace(t) {
		return
	}
	const flows, frames = 64, 4
	p := open(t, Spec{Vdev: "net_tap0,iface=utap0", MTU: 1500, Queues: 2})[0]
	ip(t, "link", "set", "utap0", "up")
	waitUp(t, p)
	if p.Queues() != 2 {
		t.Fatalf("%d queues", p.Queues())
	}
	frame := func(flow int) []byte { // UDP, with a port number for each flow
		head := []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 9, 8, 0, 0x45, 0, 0, 60, 0, 0, 0, 0, 64, 17, 0, 0,
			10, 0, 0, 1, 10, 0, 0, 2, 0xc0, byte(flow), 0xc1, byte(flow), 0, 40, 0, 0}
		return append(head, make([]byte, 32)...)
	}
	send := rawSocket(t, "utap0")
	for i := range flows * frames {
		if err := send(frame(i % flows)); err != nil {
			t.Fatal(err)
		}
	}
	queueOf, came, each := map[byte]int{}, 0, [2]int{}
	var pk [1]port.Packet
	for end := time.Now().Add(time.Minute); came < flows*frames; pause() {
		if time.Now().After(end) {
			t.Fatalf("%d of %d frames came, by the queues %v", came, flows*frames, each)
		}
		for i := range 2 {
			if q := p.Queue(i); q.Rx(pk[:]) == 1 {
				if b := pk[0].Data; len(b) > 35 && fromTest(b) {
					if other, known := queueOf[b[35]]; known && other != i {
						t.Errorf("flow %d comes by both queues", b[35])
					}
					queueOf[b[35]] = i
					came++
					each[i]++
				}
				q.Free(pk[:])
			}
		}
	}
	if each[0] == 0 || each[1] == 0 {
		t.Errorf("the queues had %v frames", each)
	}
	kernel := open(t, Spec{Vdev: "net_af_packet0,iface=utap0", MTU: 1500})[0]
	waitUp(t, kernel)
	for i := range 2 {
		q := p.Queue(i)
		if q.Alloc(pk[:]) != 1 {
			t.Fatal("no buffer")
		}
		pk[0].Data = pk[0].Data[:copy(pk[0].Data, frame(i))]
		if q.Tx(pk[:]) != 1 {
			t.Fatalf("queue %d does not send", i)
		}
		q.Flush()
		if b := next(t, kernel.Queue(0)); b[35] != byte(i) {
			t.Errorf("queue %d sent %x", i, b)
		}
	}
}
