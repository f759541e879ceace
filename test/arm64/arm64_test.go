package arm64

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const (
	compiler = "aarch64-linux-gnu-gcc"
	emulator = "qemu-aarch64-static"
)

// libraries unpacks Debian's arm64 packages, or skips the test.
func libraries(t *testing.T) (root string) {
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
	root = filepath.Join(dir, "root")
	if out, err := exec.Command("../../packaging/unpack", "bookworm", "arm64", root, "libdpdk-dev", "libibverbs-dev",
		"librdmacm-dev", "libc6-dev").CombinedOutput(); err != nil {
		t.Skipf("Debian's packages for arm64 can't be had: %v\n%s", err, tail(string(out)))
	}
	return root
}

func tail(s string) string { return s[max(0, len(s)-3000):] }

// left has tests that can't pass in an emulator, with the reasons.
var left = []string{
	"TestCatchesTruncation|TestTruncatedFile", // qemu gives a SIGBUS without its address
	"TestOverrun",                           // SO_RXQ_OVFL
	"^TestGroups$",                          // qemu 7.2 reads the interface of an ip_mreqn wrongly: ENODEV
	"TestActivated|TestNullWhenThereIsRoom", // they start themselves
	"TestHostileRings|TestBadFramesAreSkipped|TestScribbler|TestEventfdTrap|TestEventfdInterrupts", // io_setup(2)
	"TestStrictIsBounded", // has no time limit under qemu
}

// units are the packages whose tests need no second program. test/release covers those that build programs and start
// them. The simulations of urdmad/core/reliable/reliabletest would take a quarter of an hour.
var units = []string{"wire", "counters", "schema", "inspect", "config", "systemd", "dpdk/loopback", "dpdk/netdev",
	"dpdk/port/...", "dpdk/udp", "test/linked",
	"urdmad/core/clock", "urdmad/core/cm", "urdmad/core/connect", "urdmad/control/account",
	"urdmad/control/memfd", "urdmad/control/process", "urdmad/core/engine/...", "urdmad/core/events", "urdmad/core/fault",
	"urdmad/logs", "urdmad/core/mailbox",
	"urdmad/core/mem", "urdmad/attach/metrics", "urdmad/core/neighbour", "urdmad/core/netif", "urdmad/core/qp/...",
	"urdmad/core/qpconnect", "urdmad/core/rdmap", "urdmad/core/reliable",
	"urdmad/core/samehost", "urdmad/sysfs", "urdmad/core/trp", "verbs/abi", "verbs/personality", "verbs/ring",
	"urdma/capture", "urdma/report", "urdma/top"}

// TestUnits runs Go's unit tests, which include the layouts of C structures, in their short forms. Emulated they are
// slow, and qemu keeps some megabytes of each simulated world, so 50,000 of them used up all memory.
func TestUnits(t *testing.T) {
	root := libraries(t)
	args := []string{"arm64", root, ".ci/go", "test", "-count=1", "-timeout=2h", "-p=1", "-exec",
		fmt.Sprintf("%s -L %s", emulator, root), "-skip", strings.Join(left, "|")}
	for _, u := range units {
		args = append(args, "./"+u)
	}
	c := exec.Command("packaging/cross", args...)
	c.Dir, c.Env = "../..", append(os.Environ(), "URDMA_LONG=", "QEMU_LD_PREFIX="+root)
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, tail(string(out)))
	}
}
