package dpdk

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"urdma/dpdk/port"
	"urdma/dpdk/port/porttest"
)

// pairOfVeth makes a veth pair, both ends up.
func pairOfVeth(t *testing.T, args ...string) {
	t.Helper()
	ip(t, append(append([]string{"link", "add", "va"}, args...), append([]string{"type", "veth", "peer", "name", "vb"}, args...)...)...)
	t.Cleanup(func() { ipTry("link", "del", "va") })
	ip(t, "link", "set", "va", "up")
	ip(t, "link", "set", "vb", "up")
}

// watched collects what a port says of its link.
type watched struct{ changes chan bool }

func watch(p port.Port) watched {
	w := watched{make(chan bool, 64)}
	p.Watch(func(up bool) { w.changes <- up })
	return w
}

// expect waits for the next change.
func (w watched) expect(t *testing.T, p port.Port, up bool) {
	t.Helper()
	select {
	case got := <-w.changes:
		if got != up || p.Link() != up {
			t.Fatalf("link changed to %v, Link() is %v, want %v", got, p.Link(), up)
		}
	case <-time.After(5 * time.Second):
		t.Fatalf("the link does not become %v", up)
	}
}

// asleep does what a worker with nothing to do does for a while, and fails if it
// was woken more than a few times.
func asleep(t *testing.T, p port.Port, why string) {
	t.Helper()
	q := p.Queue(0)
	var pk [32]port.Packet
	wakes := 0
	for end := time.Now().Add(300 * time.Millisecond); time.Now().Before(end); {
		q.Free(pk[:q.Rx(pk[:])])
		fd, armed := q.ArmRx()
		if !armed {
			continue
		}
		poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		if n, _ := unix.Poll(poll, int(time.Until(end).Milliseconds())+1); n > 0 {
			wakes++
		}
		q.DisarmRx()
	}
	if wakes > 30 { // the kernel's own frames, neighbour discovery
		t.Errorf("%s: woken %d times in 0.3 s", why, wakes)
	}
}

// flood sends more frames than any ring holds, and fails if the port takes none
// for long.
func flood(t *testing.T, p port.Port) {
	t.Helper()
	q := p.Queue(0)
	var pk [32]port.Packet
	sent := 0
	for deadline := time.Now().Add(5 * time.Second); sent < 8000; {
		n := q.Alloc(pk[:])
		for i := range pk[:n] {
			pk[i].Data = pk[i].Data[:60]
			clear(pk[i].Data)
		}
		took := q.Tx(pk[:n])
		q.Free(pk[took:n])
		q.Flush()
		if sent += took; time.Now().After(deadline) {
			t.Fatalf("%d frames taken in 5 s", sent)
		}
	}
}

// kernelDriver is a driver over a network interface.
type kernelDriver struct {
	name string
	// open makes the interface that the test takes down, and ports A, over it,
	// and B, which it exchanges frames with.
	open func(t *testing.T) (iface string, a, b port.Port)
}

func kernelDrivers() []kernelDriver {
	over := func(vdev string) func(t *testing.T) (string, port.Port, port.Port) {
		return func(t *testing.T) (string, port.Port, port.Port) {
			pairOfVeth(t)
			p := open(t, Spec{Vdev: vdev + "0,iface=va"}, Spec{Vdev: "net_af_packet1,iface=vb"})
			return "va", p[0], p[1]
		}
	}
	return []kernelDriver{
		{"af_packet", over("net_af_packet")},
		{"af_xdp", over("net_af_xdp")},
		{"tap", func(t *testing.T) (string, port.Port, port.Port) {
			a := open(t, Spec{Vdev: "net_tap0,iface=utap0"})
			ip(t, "link", "set", "utap0", "up")
			b := open(t, Spec{Vdev: "net_af_packet0,iface=utap0"})
			return "utap0", a[0], b[0]
		}},
	}
}

// TestLinkDownAndUp: the port says so, sleeps meanwhile, drops what it is to
// send, and carries frames again afterwards.
func TestLinkDownAndUp(t *testing.T) {
	if ranInNamespace(t) {
		return
	}
	for _, d := range kernelDrivers() {
		t.Run(d.name, func(t *testing.T) {
			iface, a, b := d.open(t)
			waitUp(t, a, b)
			asleep(t, a, "up")
			w := watch(a)
			for range 3 {
				before := a.Stats()
				ip(t, "link", "set", iface, "down")
				w.expect(t, a, false)
				asleep(t, a, "down")
				flood(t, a)
				asleep(t, a, "down after sending")
				s := a.Stats()
				if s.TxDropped-before.TxDropped < 8000 || s.LinkDowns != before.LinkDowns+1 {
					t.Errorf("before %+v, while down %+v", before, s)
				}
				ip(t, "link", "set", iface, "up")
				w.expect(t, a, true)
				waitUp(t, a, b)
				asleep(t, a, "up again")
				porttest.Exchange(t, &porttest.Pair{A: a, B: b, Step: pause, Foreign: true, Lossy: true}, 500)
			}
		})
	}
}

// TestPeerOfVethDown: the carrier is gone, though the interface is up.
func TestPeerOfVethDown(t *testing.T) {
	if ranInNamespace(t) {
		return
	}
	pairOfVeth(t)
	p := open(t, Spec{Vdev: "net_af_packet0,iface=va"})[0]
	waitUp(t, p)
	w := watch(p)
	ip(t, "link", "set", "vb", "down")
	w.expect(t, p, false)
	asleep(t, p, "without carrier")
	flood(t, p)
	ip(t, "link", "set", "vb", "up")
	w.expect(t, p, true)
}

// TestDownAtStart: the port opens, says that it is down, sleeps, and works once
// the interface comes up.
func TestDownAtStart(t *testing.T) {
	if ranInNamespace(t) {
		return
	}
	for _, vdev := range []string{"net_af_packet0", "net_af_xdp0"} {
		t.Run(vdev, func(t *testing.T) {
			pairOfVeth(t)
			ip(t, "link", "set", "va", "down")
			p := open(t, Spec{Vdev: vdev + ",iface=va"}, Spec{Vdev: "net_af_packet1,iface=vb"})
			if p[0].Link() || p[1].Link() {
				t.Error("link is up")
			}
			asleep(t, p[0], "down")
			ip(t, "link", "set", "va", "up")
			waitUp(t, p...)
			asleep(t, p[0], "up")
			porttest.Exchange(t, &porttest.Pair{A: p[0], B: p[1], Step: pause, Foreign: true, Lossy: true}, 500)
		})
	}
}

// TestInterfaceDeleted: the port stays, down for ever and asleep, and closes.
// Another interface of the same name is not taken for it.
func TestInterfaceDeleted(t *testing.T) {
	if ranInNamespace(t) {
		return
	}
	for _, d := range kernelDrivers() {
		t.Run(d.name, func(t *testing.T) {
			iface, a, b := d.open(t)
			waitUp(t, a, b)
			w := watch(a)
			ip(t, "link", "del", iface)
			w.expect(t, a, false)
			asleep(t, a, "deleted")
			asleep(t, b, "peer deleted")
			flood(t, a)
			flood(t, b)
			asleep(t, a, "deleted, after sending")
			if d.name != "tap" {
				pairOfVeth(t)
				asleep(t, a, "another of the same name")
			}
			if a.Link() {
				t.Error("link is up")
			}
			if err := errors.Join(a.Close(), b.Close()); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestInterfaceRenamed changes nothing.
func TestInterfaceRenamed(t *testing.T) {
	if ranInNamespace(t) {
		return
	}
	pairOfVeth(t)
	p := open(t, Spec{Vdev: "net_af_packet0,iface=va"}, Spec{Vdev: "net_af_packet1,iface=vb"})
	waitUp(t, p...)
	ip(t, "link", "set", "va", "down")
	ip(t, "link", "set", "va", "name", "other")
	ip(t, "link", "set", "other", "up")
	t.Cleanup(func() { ipTry("link", "del", "other") })
	waitUp(t, p...)
	porttest.Exchange(t, &porttest.Pair{A: p[0], B: p[1], Step: pause, Foreign: true, Lossy: true}, 500)
}

// interfaceFacts is what a port must leave as it was, as sysfs has it.
func interfaceFacts(t *testing.T, name string) string {
	t.Helper()
	var facts strings.Builder
	for _, file := range []string{"mtu", "flags", "address"} {
		b, err := os.ReadFile("/sys/class/net/" + name + "/" + file)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&facts, "%s %s ", file, strings.TrimSpace(string(b)))
	}
	return facts.String()
}

// TestInterfaceIsLeftAsItWas: its MTU is taken, or changed only where asked for
// and put back; nobody else sees a change of its address or flags.
func TestInterfaceIsLeftAsItWas(t *testing.T) {
	if ranInNamespace(t) {
		return
	}
	mountSysfs(t)
	for _, vdev := range []string{"net_af_packet0", "net_af_xdp0"} {
		for _, c := range []struct {
			name  string
			spec  Spec
			while string // what is different on the interface while the port is open
			want  int    // the port's MTU
		}{
			{"its MTU", Spec{}, "mtu 1400 flags 0x1003", 1400},
			{"a smaller MTU", Spec{MTU: 1000}, "mtu 1400 flags 0x1003", 1000},
			{"a larger MTU, raised", Spec{MTU: 1600, RaiseMTU: true}, "mtu 1600 flags 0x1003", 1600},
			{"another address", Spec{MAC: [6]byte{2, 0, 0, 0, 0, 9}}, "mtu 1400 flags 0x1103", 1400}, // IFF_PROMISC
		} {
			t.Run(vdev+" "+c.name, func(t *testing.T) {
				pairOfVeth(t, "mtu", "1400")
				before := interfaceFacts(t, "va")
				c.spec.Vdev = vdev + ",iface=va"
				p, closeAll, err := OpenPorts([]Spec{c.spec}, ealTestArgs, testLog(t))
				if err != nil {
					t.Fatal(err)
				}
				if got := p[0].Info(); got.MTU != c.want || c.spec.MAC != [6]byte{} && got.MAC != c.spec.MAC {
					t.Errorf("the port is %+v, want MTU %d", got, c.want)
				}
				want := strings.Replace(before, "mtu 1400 flags 0x1003", c.while, 1)
				if got := interfaceFacts(t, "va"); got != want {
					t.Errorf("while open: %s, want %s", got, want)
				}
				if err := closeAll(); err != nil {
					t.Error(err)
				}
				if after := interfaceFacts(t, "va"); after != before {
					t.Errorf("after: %s, before: %s", after, before)
				}
			})
		}
	}
}

// TestPromiscuousStays: a flag that somebody set on the interface is not the
// port's to take away.
func TestPromiscuousStays(t *testing.T) {
	if ranInNamespace(t) {
		return
	}
	mountSysfs(t)
	for _, vdev := range []string{"net_af_packet0", "net_af_xdp0"} {
		pairOfVeth(t)
		ip(t, "link", "set", "va", "promisc", "on")
		before := interfaceFacts(t, "va")
		_, closeAll, err := OpenPorts([]Spec{{Vdev: vdev + ",iface=va"}}, ealTestArgs, testLog(t))
		if err != nil {
			t.Fatal(err)
		}
		open := interfaceFacts(t, "va")
		if err := closeAll(); err != nil {
			t.Error(err)
		}
		if after := interfaceFacts(t, "va"); open != before || after != before {
			t.Errorf("%s: before %s, while open %s, after %s", vdev, before, open, after)
		}
		ip(t, "link", "del", "va")
	}
}

// TestOtherAddressConformance: frames for an address that is not the
// interface's come in.
func TestOtherAddressConformance(t *testing.T) {
	if ranInNamespace(t) {
		return
	}
	pairOfVeth(t)
	p := open(t, Spec{Vdev: "net_af_packet0,iface=va", MAC: [6]byte{2, 0, 0, 0, 0, 9}}, Spec{Vdev: "net_af_xdp0,iface=vb", MAC: [6]byte{2, 0, 0, 0, 0, 8}})
	waitUp(t, p...)
	porttest.Exchange(t, &porttest.Pair{A: p[0], B: p[1], Step: pause, Foreign: true, Lossy: true}, 2000)
}

// TestMTULargerThanTheInterface is refused with the setting's name, before
// anything is changed.
func TestMTULargerThanTheInterface(t *testing.T) {
	if ranInNamespace(t) {
		return
	}
	mountSysfs(t)
	pairOfVeth(t, "mtu", "1400")
	before := interfaceFacts(t, "va")
	for _, vdev := range []string{"net_af_packet0", "net_af_xdp0", "eth_af_packet0"} {
		_, _, err := OpenPorts([]Spec{{Name: "p", Vdev: vdev + ",iface=va", MTU: 1500}}, ealTestArgs, testLog(t))
		var wrong *SettingError
		if !errors.As(err, &wrong) || wrong.Setting != "mtu" || wrong.Port != "p" ||
			!strings.Contains(err.Error(), "found 1500, allowed: at most 1400, the MTU of network interface va") {
			t.Errorf("%s: %v", vdev, err)
		}
		if after := interfaceFacts(t, "va"); after != before {
			t.Errorf("after: %s, before: %s", after, before)
		}
	}
}
