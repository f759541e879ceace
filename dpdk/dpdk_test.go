package dpdk

import (
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"urdma/dpdk/port"
	"urdma/dpdk/port/porttest"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if err := Cleanup(); err != nil {
		println(err.Error())
		code = 1
	}
	os.Exit(code)
}

// ealTestArgs reserves memory for all tests of the process, because the EAL can be started only once.
var ealTestArgs = []string{"--no-huge", "--no-shconf", "-m", "512"}

func testLog(t *testing.T) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelInfo}))
}

func open(t *testing.T, specs ...Spec) []port.Port {
	t.Helper()
	ports, closeAll, err := OpenPorts(specs, ealTestArgs, testLog(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := closeAll(); err != nil {
			t.Error(err)
		}
	})
	return ports
}

func waitUp(t *testing.T, ports ...port.Port) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for _, p := range ports {
		for !p.Link() {
			if time.Now().After(deadline) {
				t.Fatalf("%s: link does not come up", p.Info().Name)
			}
			time.Sleep(time.Millisecond)
		}
	}
}

func pause() { time.Sleep(20 * time.Microsecond) }

// TestRingConformance runs on net_ring, whose transmit ring is its receive ring.
func TestRingConformance(t *testing.T) {
	for _, mtu := range []int{1500, 9000} {
		porttest.Run(t, func(t *testing.T) *porttest.Pair {
			p := open(t, Spec{Name: "ring", Vdev: "net_ring0", MTU: mtu})
			waitUp(t, p...)
			return &porttest.Pair{A: p[0], B: p[0], Step: pause}
		})
	}
}

// TestRegisteredThread does the same from a thread registered with the EAL, with pool caches.
func TestRegisteredThread(t *testing.T) {
	p := open(t, Spec{Vdev: "net_ring0", MTU: 1500})
	waitUp(t, p...)
	done := make(chan error, 1)
	go func() {
		// The thread ends with the goroutine, as it was never unlocked.
		done <- onRegisteredThread(func() { porttest.Echo(t, p[0], 2000, pause) })
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestAffinityIsRestored(t *testing.T) {
	var before, after unix.CPUSet
	unix.SchedGetaffinity(0, &before)
	open(t, Spec{Vdev: "net_ring0", MTU: 1500})
	tasks, err := filepath.Glob("/proc/self/task/*/status")
	if err != nil {
		t.Fatal(err)
	}
	unix.SchedGetaffinity(0, &after)
	if before != after {
		t.Error("this thread is pinned")
	}
	for _, f := range tasks {
		b, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(b), "Cpus_allowed_list:")
		list, _, _ := strings.Cut(strings.TrimSpace(rest), "\n")
		if before.Count() > 1 && !strings.ContainsAny(list, "-,") && !strings.Contains(string(b), "eal-intr") {
			t.Errorf("%s: pinned to %s", f, list)
		}
	}
}

func TestNativeDriversNeedNoEAL(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.sock")
	p := open(t, Spec{Name: "s", Vdev: "memif,role=server,socket=" + path + ",id=3,mtu=9000,ring=256"},
		Spec{Name: "c", Vdev: "memif,role=client,socket=" + path + ",id=3,mtu=9000"},
		Spec{Name: "lo", Vdev: "loopback"})
	waitUp(t, p...)
	if i := p[0].Info(); i.MTU != 9000 || i.Driver != "memif" || i.Name != "s" {
		t.Errorf("info %+v", i)
	}
	if p[2].Info().Wire {
		t.Error("a loopback with a wire")
	}
}

func TestSpecErrors(t *testing.T) {
	for _, c := range []struct {
		s    Spec
		want string
	}{
		{Spec{Name: "x"}, "neither a vdev nor a PCI device"},
		{Spec{Vdev: "net_ring0", PCI: "0000:01:00.0"}, "one is meant"},
		{Spec{Vdev: "net_ring0", MTU: 99}, "MTU 99"},
		{Spec{Vdev: "net_ring0", RxDesc: 7}, "descriptors"},
		{Spec{Vdev: "memif,role=boss,socket=/x"}, "role must be server or client"},
		{Spec{Vdev: "memif,socket=/x"}, "role must be"},
		{Spec{Vdev: "memif,role=server"}, "socket=PATH is missing"},
		{Spec{Vdev: "memif,role=server,socket=/x,colour=red"}, "memif knows role"},
		{Spec{Vdev: "memif,role=server,socket=/x,id=-1"}, "id=-1"},
		{Spec{Vdev: "memif,role=server,role=client,socket=/x"}, "given twice"},
		{Spec{Vdev: "memif,role"}, "not key=value"},
		{Spec{Vdev: "loopback,mtu=x"}, "mtu=x"},
		{Spec{Vdev: "loopback,speed=9"}, "knows only mtu"},
	} {
		_, _, err := OpenPorts([]Spec{c.s}, nil, nil)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v, want one about %q", c.s, err, c.want)
		}
	}
	two := []Spec{{Name: "a", Vdev: "net_ring0"}, {Name: "b", Vdev: "net_ring0"}}
	if _, _, err := OpenPorts(two, nil, nil); err == nil ||
		!strings.Contains(err.Error(), "both name the device net_ring0") {
		t.Errorf("error %v", err)
	}
}

// TestDeviceErrors: if a device can't be opened, the error names the device, the reason and a remedy; ports
// opened before it are closed.
func TestDeviceErrors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.sock")
	first := Spec{Vdev: "memif,role=server,socket=" + path}
	for _, c := range []struct {
		vdev string
		want []string
	}{
		{"net_af_packet0,iface=nosuch0", []string{"net_af_packet0", `"nosuch0"`, "no such device", "interface exists"}},
		{"net_af_packet0", []string{"iface=NAME is missing"}},
		{"net_af_xdp0", []string{"iface=NAME is missing"}},
		{"net_af_packet0,iface=lo,blocksz=1", []string{"net_af_packet0", "DPDK said"}},
		{"net_nosuch0", []string{"net_nosuch0", "driver's name"}},
		{"net_tap0,iface=aninterfacenamethatistoolong", []string{"net_tap0", "/dev/net/tun"}},
	} {
		_, _, err := OpenPorts([]Spec{first, {Name: "bad", Vdev: c.vdev}}, ealTestArgs, testLog(t))
		if err == nil {
			t.Errorf("%s: opened", c.vdev)
			continue
		}
		t.Log(err)
		for _, w := range append(c.want, `"bad"`) {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: error %q does not say %q", c.vdev, err, w)
			}
		}
		if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: the first port stayed open", c.vdev)
		}
	}
}

// TestPoolRoom: buffers are as long as the driver requires, and for NICs at least as long as usual; vmxnet3
// requires 1,646 bytes.
func TestPoolRoom(t *testing.T) {
	for _, c := range []struct {
		wanted, minRx int
		software      bool
		room          int
	}{
		{0, 0, true, 0},
		{0, 1646, true, 1646},
		{2048, 1646, true, 2048},
		{0, 1646, false, 2048},
		{0, 4000, false, 4000},
		{0, maxRoom, false, maxRoom},
		{0, maxRoom + 1, false, -1},
		{0, 1<<32 - 1, true, -1},
	} {
		p := pool{minRoom: c.wanted}
		if err := p.setRoom(c.minRx, c.software); (err != nil) != (c.room < 0) || err == nil && p.minRoom != c.room {
			t.Errorf("%+v: %d bytes, %v", c, p.minRoom, err)
		}
	}
}

func TestEALArguments(t *testing.T) {
	specs := []Spec{{Vdev: "net_ring0", MTU: 9000}, {PCI: "0000:01:00.0"}, {Vdev: "loopback"}}
	got := strings.Join(ealArguments(specs, nil), " ")
	for _, w := range []string{"--lcores 0@(", "--file-prefix=urdmad-", "-a 0000:01:00.0", "--no-telemetry"} {
		if !strings.Contains(got, w) {
			t.Errorf("%q lacks %q", got, w)
		}
	}
	if strings.Contains(got, "--no-huge") == strings.Contains(got, "--in-memory") {
		t.Errorf("%q: exactly one of --no-huge and --in-memory is possible", got)
	}
	if mb := memoryMB(specs); mb < 120 || mb > 400 {
		t.Errorf("%d MB for two jumbo ports", mb)
	}
	got = strings.Join(ealArguments(specs[:1], []string{"-l1", "--file-prefix=x", "-m", "77"}), " ")
	for _, w := range []string{"--lcores", "urdmad-", "--no-huge", "--in-memory"} {
		if strings.Contains(got, w) {
			t.Errorf("%q: ours is there beside the user's: %q", got, w)
		}
	}
}

// TestAfPacketConformance runs the suite over a veth pair, in a network
// namespace of its own.
func TestAfPacketConformance(t *testing.T) {
	if ranInNamespace(t) {
		return
	}
	for _, mtu := range []int{1500, 9000} {
		porttest.Run(t, func(t *testing.T) *porttest.Pair {
			ip(t, "link", "add", "va", "mtu", "9000", "type", "veth", "peer", "name", "vb", "mtu", "9000")
			t.Cleanup(func() { ip(t, "link", "del", "va") })
			ip(t, "link", "set", "va", "up")
			ip(t, "link", "set", "vb", "up")
			p := open(t, Spec{Vdev: "net_af_packet0,iface=va", MTU: mtu}, Spec{Vdev: "net_af_packet1,iface=vb", MTU: mtu})
			waitUp(t, p...)
			return &porttest.Pair{A: p[0], B: p[1], Step: pause, Foreign: true, Lossy: true, Interrupts: true}
		})
	}
}

// ranInNamespace runs the calling test in a child process with its own network namespace and returns true. In
// that child it returns false, and the test continues.
func ranInNamespace(t *testing.T) bool {
	t.Helper()
	if os.Getenv("URDMA_TEST_NETNS") == t.Name() {
		return false
	}
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: needs root, for a network namespace with a veth pair")
	}
	for _, tool := range []string{"unshare", "ip"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("SKIPPED: needs the command %s", tool)
		}
	}
	args := []string{"--net", "--mount", "--propagation", "private", "--", os.Args[0], "-test.run", "^" + t.Name() + "$",
		"-test.timeout", "120s"}
	if testing.Verbose() {
		args = append(args, "-test.v")
	}
	cmd := exec.Command("unshare", args...)
	cmd.Env = append(os.Environ(), "URDMA_TEST_NETNS="+t.Name())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("in the namespace: %v\n%s", err, out)
	}
	if testing.Verbose() {
		t.Logf("in the namespace:\n%s", out)
	}
	return true
}

func ip(t *testing.T, args ...string) {
	t.Helper()
	if out, err := ipTry(args...); err != nil {
		t.Fatalf("ip %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func ipTry(args ...string) ([]byte, error) { return exec.Command("ip", args...).CombinedOutput() }

// mountSysfs makes /sys show this network namespace; the process has its own mount namespace.
func mountSysfs(t *testing.T) {
	t.Helper()
	if err := unix.Mount("sysfs", "/sys", "sysfs", 0, ""); err != nil {
		t.Fatal(err)
	}
}
