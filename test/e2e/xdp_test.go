package e2e

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"urdma/test/lab"
	"urdma/test/lab/labtest"
)

// TestInterfaceOfAnotherUrdmad: a second urdmad on an interface that one uses by af_xdp names the obstacle, and the
// first one continues to receive. Its exit status is one after which systemd starts it again.
func TestInterfaceOfAnotherUrdmad(t *testing.T) {
	a, b := labtest.Join(t, lab.AFXDP, nil)
	second, err := a.Start("env", "XDG_RUNTIME_DIR="+t.TempDir(), a.Program("urdmad"), "--config",
		filepath.Join(a.Directory(), "urdma.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Wait(lab.Patience); err == nil || !strings.Contains(err.Error(), "exit status 1") {
		t.Errorf("got %v, want it to end with status 1", err)
	}
	tellsOfProgram(t, second.Output())
	works(t, a, b)
}

// tellsOfProgram checks that urdmad names the XDP program in its way, and prints the command that removes it.
func tellsOfProgram(t *testing.T, out string) (remove []string) {
	t.Helper()
	said := regexp.MustCompile(`veth0 has an XDP program \(id [1-9][0-9]*\).*"(ip link set dev veth0 xdp[a-z]* off)"`).FindStringSubmatch(out)
	if said == nil {
		t.Errorf("urdmad does not tell of the XDP program:\n%s", out)
		return nil
	}
	return strings.Fields(said[1])
}

// TestInterfaceWithXDPProgram: urdmad names the obstacle and leaves the foreign XDP program in place. Once it is
// removed by the printed command, urdmad starts.
func TestInterfaceWithXDPProgram(t *testing.T) {
	a, b := labtest.Join(t, lab.AFXDP, nil)
	for _, mode := range []struct {
		name string
		flag uint32
	}{{"xdp", unix.XDP_FLAGS_DRV_MODE}, {"xdpgeneric", unix.XDP_FLAGS_SKB_MODE}} {
		if err := a.StopDaemon(); err != nil {
			t.Fatal(err)
		}
		attachXDP(t, a, mode.flag)
		before := xdpProgram(t, a)
		if !strings.HasPrefix(before, mode.name+" id ") {
			t.Fatalf("%s: attached %q", mode.name, before)
		}
		err := a.StartDaemonOnce()
		if err == nil {
			t.Fatalf("%s: urdmad started", mode.name)
		}
		remove := tellsOfProgram(t, err.Error())
		if now := xdpProgram(t, a); now != before {
			t.Errorf("%s: the interface has %q, had %q", mode.name, now, before)
		}
		if t.Failed() {
			return
		}
		if err := a.Net.Run(remove...); err != nil {
			t.Fatal(err)
		}
		if err := a.StartDaemon(); err != nil {
			t.Fatal(err)
		}
	}
	works(t, a, b)
}

// TestXDPProgramRemoved: urdmad logs that a port receives nothing because its XDP program was removed.
func TestXDPProgramRemoved(t *testing.T) {
	a, b := labtest.Join(t, lab.AFXDP, nil)
	works(t, a, b)
	if err := a.Net.Run("ip", "link", "set", "dev", "veth0", "xdp", "off"); err != nil {
		t.Fatal(err)
	}
	await(t, "urdmad to tell of it", func() (bool, string) {
		out := a.Daemon.Output()
		return strings.Contains(out, "XDP program of the port's network interface was removed"), out
	})
	if err := a.StopDaemon(); err != nil {
		t.Fatal(err)
	}
	if err := a.StartDaemon(); err != nil {
		t.Fatal(err)
	}
	works(t, a, b)
}

// TestKilledTestpmd: urdmad starts on an interface whose last user was killed.
func TestKilledTestpmd(t *testing.T) {
	need(t, "dpdk-testpmd")
	wires := []lab.Wire{lab.AFXDP}
	if long {
		wires = append(wires, lab.AFPacket)
	}
	for _, w := range wires {
		t.Run(w.Name, func(t *testing.T) {
			a, b := labtest.Join(t, w, nil)
			a.Daemon.Kill()
			killTestpmd(t, a, w)
			if err := a.StartDaemon(); err != nil {
				t.Fatal(err)
			}
			works(t, a, b)
		})
	}
}

// killTestpmd kills a testpmd that uses the node's interface.
func killTestpmd(t *testing.T, n *lab.Node, w lab.Wire) {
	t.Helper()
	prefix := fmt.Sprintf("urdmatest%d", os.Getpid())
	t.Cleanup(func() { // the EAL leaves it, empty
		for _, dir := range []string{"/var/run", n.Directory(), os.TempDir()} {
			os.Remove(filepath.Join(dir, "dpdk", prefix))
		}
	})
	p, err := n.Start("dpdk-testpmd", "--no-huge", "--no-shconf", "-m", "256", "--no-pci", "--no-telemetry",
		"--file-prefix="+prefix,
		"--vdev="+w.Device, "--", "--auto-start", "--total-num-mbufs=8192", "--no-flush-rx", "--forward-mode=rxonly",
		"--stats-period=1")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Kill()
	await(t, "testpmd to have its port", func() (bool, string) {
		return strings.Contains(p.Output(), "Rx-pps"), p.Output()
	})
}

// xdpProgram returns ip's information about the program on the node's interface: mode, id and name.
func xdpProgram(t *testing.T, n *lab.Node) string {
	t.Helper()
	p, err := n.Start("ip", "link", "show", "dev", "veth0")
	if err == nil {
		err = p.Wait(lab.Patience)
	}
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile(`xdp[a-z]* `).FindString(p.Output()) + regexp.MustCompile(`id [1-9].*`).FindString(p.Output())
}

// attachXDP attaches a program that passes all frames to the node's interface.
func attachXDP(t *testing.T, n *lab.Node, mode uint32) {
	t.Helper()
	program, err := loadPass()
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(program)
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // the thread enters another namespace, and ends with the goroutine
		done <- func() error {
			ns, err := os.Open("/proc/" + n.Net.PID() + "/ns/net")
			if err != nil {
				return err
			}
			defer ns.Close()
			if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
				return err
			}
			return setXDP("veth0", program, mode)
		}()
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// loadPass loads "r0 = XDP_PASS; exit" (bpf(2)).
func loadPass() (fd int, err error) {
	const pass = 2
	code := []byte{0xb7, 0, 0, 0, pass, 0, 0, 0, 0x95, 0, 0, 0, 0, 0, 0, 0}
	license := []byte("GPL\x00")
	attr := struct {
		kind, instructions uint32
		code, license      unsafe.Pointer
		rest               [104]byte
	}{unix.BPF_PROG_TYPE_XDP, 2, unsafe.Pointer(&code[0]), unsafe.Pointer(&license[0]), [104]byte{}}
	r, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_PROG_LOAD, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
	if errno != 0 {
		return -1, fmt.Errorf("loading an XDP program: %w", errno)
	}
	return int(r), nil
}

// setXDP attaches a program to an interface of this thread's network namespace
// (rtnetlink(7), RTM_SETLINK with IFLA_XDP).
func setXDP(iface string, program int, mode uint32) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	index, err := indexOf(iface)
	if err != nil {
		return err
	}
	order := binary.NativeEndian
	b := make([]byte, unix.NLMSG_HDRLEN+unix.SizeofIfInfomsg, 64)
	b = order.AppendUint16(b, 4+8+8) // the nest, with two attributes
	b = order.AppendUint16(b, unix.IFLA_XDP|unix.NLA_F_NESTED)
	for _, a := range []struct {
		kind  uint16
		value uint32
	}{{unix.IFLA_XDP_FD, uint32(program)}, {unix.IFLA_XDP_FLAGS, mode}} {
		b = order.AppendUint16(b, 8)
		b = order.AppendUint16(b, a.kind)
		b = order.AppendUint32(b, a.value)
	}
	order.PutUint32(b, uint32(len(b)))
	order.PutUint16(b[4:], unix.RTM_SETLINK)
	order.PutUint16(b[6:], unix.NLM_F_REQUEST|unix.NLM_F_ACK)
	order.PutUint32(b[unix.NLMSG_HDRLEN+4:], index)
	if err := unix.Sendto(fd, b, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	return answer(fd)
}

// indexOf asks through a socket of this thread's namespace.
func indexOf(iface string) (uint32, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	r, err := unix.NewIfreq(iface)
	if err == nil {
		err = unix.IoctlIfreq(fd, unix.SIOCGIFINDEX, r)
	}
	if err != nil {
		return 0, err
	}
	return r.Uint32(), nil
}

// answer reads the kernel's NLMSG_ERROR, whose number is 0 for success.
func answer(fd int) error {
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO,
		&unix.Timeval{Sec: int64(lab.Patience / time.Second)})
	b := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, b, 0)
	switch {
	case err != nil:
		return err
	case n < unix.NLMSG_HDRLEN+4:
		return fmt.Errorf("netlink answered with %d bytes", n)
	}
	if e := int32(binary.NativeEndian.Uint32(b[unix.NLMSG_HDRLEN:])); e != 0 {
		return unix.Errno(-e)
	}
	return nil
}
