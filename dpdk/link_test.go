package dpdk

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"urdma/dpdk/netdev"
	"urdma/dpdk/port"
	"urdma/dpdk/port/porttest"
)

// pairOfVeth makes a veth pair, both ends up.
func pairOfVeth(t *testing.T, args ...string) {
	t.Helper()
	ip(t, append(append([]string{"link", "add", "va"}, args...),
		append([]string{"type", "veth", "peer", "name", "vb"}, args...)...)...)
	t.Cleanup(func() { ipTry("link", "del", "va") })
	ip(t, "link", "set", "va", "up")
	ip(t, "link", "set", "vb", "up")
}

// watched collects the link states that a port reports. It uses the port meanwhile, as watchers may.
type watched struct{ changes chan bool }

func watch(p port.Port) watched {
	w := watched{make(chan bool, 64)}
	p.Watch(func(up bool) {
		p.Stats()
		w.changes <- up
	})
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
	case <-time.After(time.Minute):
		t.Fatalf("the link does not become %v", up)
	}
}

// asleep sleeps as an idle worker does for a while, and fails if it was woken more than a few times.
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

// flood sends more frames than any ring holds, and fails if the port accepts none for long.
func flood(t *testing.T, p port.Port) {
	t.Helper()
	q := p.Queue(0)
	var pk [32]port.Packet
	sent := 0
	for deadline := time.Now().Add(time.Minute); sent < 8000; {
		n := q.Alloc(pk[:])
		for i := range pk[:n] {
			pk[i].Data = pk[i].Data[:60]
			clear(pk[i].Data)
		}
		took := q.Tx(pk[:n])
		q.Free(pk[took:n])
		q.Flush()
		if sent += took; time.Now().After(deadline) {
			t.Fatalf("%d frames taken in a minute", sent)
		}
	}
}

// kernelDriver is a driver that uses a network interface.
type kernelDriver struct {
	name string
	// open creates the interface that the test takes down, port A on it, and port B, with which A exchanges
	// frames.
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

// TestLinkDownAndUp: the port reports the link down, sleeps, drops frames to send, and carries frames again
// afterwards.
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

// TestDownAtStart: the port opens, reports the link down, sleeps, and works once the interface comes up.
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

// TestInterfaceDeleted: the port stays open with the link down, sleeps, and can be closed. A new interface
// with the same name is not mistaken for it.
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

// TestInterfaceRenamed: a new name has no effect.
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

// TestStateWhileRenamed: an interface that is renamed while its state is read is not reported as gone.
func TestStateWhileRenamed(t *testing.T) {
	if ranInNamespace(t) {
		return
	}
	pairOfVeth(t)
	t.Cleanup(func() { ipTry("link", "del", "other") })
	dev, err := netdev.ByName("va")
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	done := make(chan error)
	go func() {
		done <- exec.Command("sh", "-ec",
			`for i in $(seq 50); do ip link set va name other; ip link set other name va; done`).Run()
	}()
	for {
		if s, err := dev.State(); err != nil || s.Gone {
			t.Fatalf("%+v, %v", s, err)
		}
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
			return
		default:
		}
	}
}

// TestInterfaceMovesAway: an interface moved to another network namespace is gone.
func TestInterfaceMovesAway(t *testing.T) {
	if ranInNamespace(t) {
		return
	}
	elsewhere := exec.Command("unshare", "--net", "cat")
	hold, err := elsewhere.StdinPipe()
	if err == nil {
		err = elsewhere.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		hold.Close()
		elsewhere.Wait()
	})
	pairOfVeth(t)
	p := open(t, Spec{Vdev: "net_af_packet0,iface=va"})[0]
	waitUp(t, p)
	w := watch(p)
	for deadline := time.Now().Add(time.Minute); sameNamespace(t, elsewhere.Process.Pid); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no other network namespace")
		}
	}
	ip(t, "link", "set", "va", "netns", fmt.Sprint(elsewhere.Process.Pid))
	w.expect(t, p, false)
	asleep(t, p, "moved away")
	flood(t, p)
	asleep(t, p, "moved away, after sending")
}

func sameNamespace(t *testing.T, pid int) bool {
	t.Helper()
	ours, err1 := os.Readlink("/proc/self/ns/net")
	theirs, err2 := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid))
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	return ours == theirs
}

// TestAskedLink: the link of a port without a network interface follows the driver.
func TestAskedLink(t *testing.T) {
	p := open(t, Spec{Vdev: "net_ring0", MTU: 1500})[0]
	w := watch(p)
	p.(*ethPort).link.Set(false) // the opposite of the driver's answer
	w.expect(t, p, false)
	w.expect(t, p, true)
}

// TestLinkFlaps: frames are sent and received while the link goes down and up repeatedly; the port's last
// report is right.
func TestLinkFlaps(t *testing.T) {
	if ranInNamespace(t) {
		return
	}
	for _, d := range kernelDrivers() {
		t.Run(d.name, func(t *testing.T) {
			iface, a, b := d.open(t)
			waitUp(t, a, b)
			flapping, done := make(chan error, 1), false
			go func() {
				var err error
				for i := 0; i < 60 && err == nil; i++ {
					_, err = ipTry("link", "set", iface, []string{"down", "up"}[i%2])
				}
				flapping <- err
			}()
			for !done {
				select {
				case err := <-flapping:
					if done = true; err != nil {
						t.Fatal(err)
					}
				default:
					flood(t, a)
					var pk [32]port.Packet
					for _, p := range []port.Port{a, b} {
						p.Queue(0).Free(pk[:p.Queue(0).Rx(pk[:])])
					}
				}
			}
			waitUp(t, a, b)
			asleep(t, a, "after the flaps")
			if s := a.Stats(); s.LinkUps != s.LinkDowns+1 {
				t.Errorf("%+v", s)
			}
			porttest.Exchange(t, &porttest.Pair{A: a, B: b, Step: pause, Foreign: true, Lossy: true}, 500)
		})
	}
}

// TestDeviceLeaves: a device that the kernel requests back is closed after the worker has seen that, and not
// before; its buffers stay valid.
func TestDeviceLeaves(t *testing.T) {
	p := open(t, Spec{Vdev: "net_ring0", MTU: 1500})[0]
	waitUp(t, p)
	w, q, e := watch(p), p.Queue(0), p.(*ethPort)
	var pk [4]port.Packet
	if n := q.Alloc(pk[:]); n != len(pk) {
		t.Fatalf("%d buffers", n)
	}
	atomic.StoreUint32((*uint32)(&e.c.queue[0].leaving), 1) // as device_event does
	w.expect(t, p, false)
	if fd, armed := q.ArmRx(); !armed || fd != e.queues[0].wake.never {
		t.Errorf("ArmRx says %d, %v", fd, armed)
	}
	if n := q.Tx(pk[:2]); n != 2 {
		t.Errorf("took %d frames", n)
	}
	for end := time.Now().Add(time.Minute); ; pause() {
		if n := q.Rx(pk[2:]); n != 0 {
			t.Fatalf("received %d frames", n)
		}
		e.mu.Lock()
		closed := e.c.device_closed
		e.mu.Unlock()
		if closed != 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the device is not closed")
		}
	}
	pk[2].Data[0] = 1
	q.Free(pk[2:])
	if s := p.Stats(); s.TxDropped != 2 || s.LinkDowns != 1 {
		t.Errorf("%+v", s)
	}
}
