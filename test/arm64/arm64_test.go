package arm64

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const (
	compiler = "aarch64-linux-gnu-gcc"
	emulator = "qemu-aarch64-static"
)

// foreign is a place where things are built for the other architecture.
type foreign struct {
	t    *testing.T
	dir  string // of our own copy of the tree, and what is built
	root string // Debian's packages
}

// newForeign unpacks the packages, or skips the test.
func newForeign(t *testing.T) *foreign {
	t.Helper()
	if os.Getenv("URDMA_LONG") == "" {
		t.Skip("takes minutes; make test-long")
	}
	for _, program := range []string{compiler, emulator, "apt-get", "dpkg"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
	dir, err := os.MkdirTemp("", "urdma-arm64-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	f := &foreign{t, dir, filepath.Join(dir, "packages", "root")}
	if out, err := exec.Command("./root.sh", filepath.Join(dir, "packages")).CombinedOutput(); err != nil {
		t.Skipf("Debian's packages for arm64 can't be had: %v\n%s", err, tail(string(out)))
	}
	return f
}

func tail(s string) string { return s[max(0, len(s)-3000):] }

// environment has Go and make build for arm64. Tests take their short forms there:
// emulated they are slow, and qemu keeps some megabytes of each simulated world, so
// 50,000 of them took all memory.
func (f *foreign) environment() []string {
	libraries := f.root + "/usr/lib/aarch64-linux-gnu"
	return append(os.Environ(), "URDMA_LONG=", "GOARCH=arm64", "CGO_ENABLED=1", "CC="+compiler+" --sysroot="+f.root,
		"PKG_CONFIG_SYSROOT_DIR="+f.root, "PKG_CONFIG_LIBDIR="+libraries+"/pkgconfig:"+f.root+"/usr/share/pkgconfig",
		"CGO_LDFLAGS=-Wl,--allow-shlib-undefined -L"+libraries, "QEMU_LD_PREFIX="+f.root)
}

func (f *foreign) run(dir string, argv ...string) (string, error) {
	c := exec.Command(argv[0], argv[1:]...)
	c.Dir, c.Env = dir, f.environment()
	out, err := c.CombinedOutput()
	return string(out), err
}

func (f *foreign) must(dir string, argv ...string) {
	f.t.Helper()
	if out, err := f.run(dir, argv...); err != nil {
		f.t.Fatalf("%v: %v\n%s", argv, err, tail(out))
	}
}

// emulated is a command line of a program of arm64, with environment variables of
// its own.
func (f *foreign) emulated(env []string, argv ...string) []string {
	libraries := f.root + "/usr/lib/aarch64-linux-gnu"
	drivers, _ := filepath.Glob(libraries + "/dpdk/pmds-*")
	line := []string{emulator, "-L", f.root, "-E", "LD_LIBRARY_PATH=" + strings.Join(append(drivers, libraries), ":")}
	for _, e := range env {
		line = append(line, "-E", e)
	}
	return append(line, argv...)
}

// left are tests that can't pass in an emulator, and why.
var left = []string{
	"TestCatchesTruncation|TestTruncatedFile", // qemu gives a SIGBUS without its address
	"TestOverrun",                           // SO_RXQ_OVFL
	"^TestGroups$",                          // qemu 7.2 gets the interface of an ip_mreqn wrong: ENODEV
	"TestActivated|TestNullWhenThereIsRoom", // start themselves
	"TestHostileRings|TestBadFramesAreSkipped|TestScribbler|TestEventfdTrap|TestEventfdInterrupts", // io_setup(2)
	"TestStrictIsBounded", // takes as long as qemu likes
}

// units are the packages whose tests need no second program. Those that build
// programs and start them have TestPrograms instead; the simulations of
// urdmad/reliable/reliabletest would take a quarter of an hour.
var units = []string{"wire", "counters", "schema", "inspect", "config", "systemd", "dpdk/loopback", "dpdk/netdev", "dpdk/port/...", "dpdk/udp", "test/linked",
	"urdmad/clock", "urdmad/cm", "urdmad/connect", "urdmad/control/account",
	"urdmad/control/memfd", "urdmad/control/process", "urdmad/engine/...", "urdmad/events", "urdmad/fault", "urdmad/logs", "urdmad/mailbox",
	"urdmad/mem", "urdmad/metrics", "urdmad/neighbour", "urdmad/netif", "urdmad/qp/...", "urdmad/qpconnect", "urdmad/rdmap", "urdmad/reliable",
	"urdmad/samehost", "urdmad/sysfs", "urdmad/trp", "verbs/abi", "verbs/personality", "verbs/ring", "urdma/capture", "urdma/report", "urdma/top"}

// TestUnits runs Go's unit tests, with C's layouts among them.
func TestUnits(t *testing.T) {
	f := newForeign(t)
	exe := fmt.Sprintf("%s -L %s", emulator, f.root)
	args := []string{".ci/go", "test", "-count=1", "-timeout=2h", "-p=1", "-exec", exe, "-skip", strings.Join(left, "|")}
	for _, u := range units {
		args = append(args, "./"+u)
	}
	if out, err := f.run("../..", args...); err != nil {
		t.Errorf("%v\n%s", err, tail(out))
	}
}

// TestPrograms builds everything, DPDK's part included, and has Debian's rping of
// that architecture verify data by way of our library and urdmad.
func TestPrograms(t *testing.T) {
	f := newForeign(t)
	tree := filepath.Join(f.dir, "tree")
	f.must("../..", "sh", "-ec", `mkdir -p "$0"; tar -cf - --exclude=./build --exclude=./.git . | tar -xf - -C "$0"`, tree)
	f.must(tree, ".ci/go", "build", "./...")
	f.must(tree, ".ci/go", "build", "-o", f.dir+"/", "./urdmad")
	f.must(tree, "make", "-s", "library", "CC="+compiler+" --sysroot="+f.root)
	socket := filepath.Join(f.dir, "urdmad.sock")
	config := filepath.Join(f.dir, "urdma.json")
	if err := os.WriteFile(config, []byte(`{ "ports": [ { "vdev": "loopback", "ipv4_address": "198.18.0.1/24" } ], "socket": "`+socket+`" }`), 0o644); err != nil {
		t.Fatal(err)
	}
	f.start(f.emulated(nil, filepath.Join(f.dir, "urdmad"), "--config", config))
	f.await("urdmad listens", func() bool { // the socket is there before that
		c, err := net.Dial("unixpacket", socket)
		if err != nil {
			return false
		}
		c.Close()
		return true
	})
	env := []string{"URDMA_SOCKET=" + socket, "LD_PRELOAD=" + filepath.Join(tree, "build/liburdma.so")}
	rping := filepath.Join(f.root, "usr/bin/rping")
	f.start(f.emulated(env, rping, "-s", "-P", "-a", "198.18.0.1"))
	var out string
	f.await("rping", func() bool { // until its server listens
		line := f.emulated(env, rping, "-c", "-a", "198.18.0.1", "-C", "20", "-V", "-v")
		text, err := exec.Command("timeout", append([]string{"60"}, line...)...).CombinedOutput()
		out = string(text)
		return err == nil && strings.Contains(out, "ping data: rdma-ping-19")
	})
	if strings.Contains(out, "data mismatch") {
		t.Errorf("rping:\n%s", out)
	}
}

// start runs a program until the test ends.
func (f *foreign) start(argv []string) {
	f.t.Helper()
	c := exec.Command(argv[0], argv[1:]...)
	c.Stdout, c.Stderr = f.t.Output(), f.t.Output()
	if err := c.Start(); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
}

func (f *foreign) await(what string, ok func() bool) {
	f.t.Helper()
	for end := time.Now().Add(5 * time.Minute); !ok(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			f.t.Fatalf("%s: not in five minutes", what)
		}
	}
}
