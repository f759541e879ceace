package programs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"urdma/test/lab"
	"urdma/test/lab/labtest"
)

// join sets up hosts on a wire that needs no root, or skips the test.
func join(t *testing.T, w lab.Wire, settings lab.Config) (a, b *lab.Node) {
	t.Helper()
	build := os.Getenv("URDMA_BUILD")
	if _, err := os.Stat(filepath.Join(build, "urdmad")); build == "" || err != nil {
		t.Skip("URDMA_BUILD doesn't say where urdmad is; make test does")
	}
	l, err := lab.New(build)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	a, b, err = l.Join(w, settings)
	if err != nil {
		t.Fatal(err)
	}
	return a, b
}

func need(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skipf("%s is not installed; %s", program, labtest.Install(program))
	}
}

// byName is a script as administrators write it: it prints which device, port and interface belong together.
const byName = `
for dev in /sys/class/infiniband/*; do
	for port in $dev/ports/*; do
		echo "${dev##*/} port ${port##*/} ==> $(cat $port/gid_attrs/ndevs/0) ($(sed 's/.*: //' $port/state))"
	done
done
for node in /sys/class/infiniband_verbs/uverbs*; do
	test -c /dev/infiniband/${node##*/} && test -w /dev/infiniband/${node##*/} && echo "${node##*/} is $(cat $node/ibdev)"
done`

// TestSysfs: programs that read /sys and /dev see the devices under urdma exec, without privilege.
func TestSysfs(t *testing.T) {
	n, _ := join(t, lab.Loopback, lab.Config{"log_level": "info"})
	mask := "Capability mask: 0x02010848"
	if lab.Core() {
		mask = "Capability mask: 0x00010000" // without a subnet
	}
	for _, c := range []struct {
		transport string
		argv      []string
		want      []string
	}{
		{"roce", []string{"ibstatus"}, []string{"'urdma0' port 1 status", "4: ACTIVE", "40 Gb/sec", "Ethernet"}},
		{"", []string{"sh", "-c", byName}, []string{"urdma0 port 1 ==> urdma0 (ACTIVE)", "uverbs0 is urdma0"}},
		{"", []string{"ibstatus"}, []string{"link_layer:\t InfiniBand"}},
		{"ib", []string{"ibstat"}, []string{"CA 'urdma0'", "State: Active", "Rate: 40", mask,
			"Link layer: InfiniBand"}},
		{"roce", []string{"ibstat", "urdma0"}, []string{"Physical state: LinkUp", "Link layer: Ethernet"}},
		{"", []string{"ls", "-l", "/dev/infiniband"}, []string{"crw-rw-rw-", "231, 192", "uverbs0", "rdma_cm"}},
	} {
		t.Run(c.transport+" "+c.argv[0], func(t *testing.T) {
			need(t, c.argv[0])
			argv := c.argv
			if c.transport != "" {
				argv = append([]string{"env", "URDMA_TRANSPORT=" + c.transport}, argv...)
			}
			out, err := n.Run(time.Minute, argv...)
			if err != nil {
				t.Error(err)
			}
			for _, want := range c.want {
				if !strings.Contains(out, want) {
					t.Errorf("%v doesn't say %q:\n%s", argv, want, out)
				}
			}
			if strings.Contains(out, "No such file") {
				t.Errorf("%v misses a file:\n%s", argv, out)
			}
		})
	}
}

const loadWithPython = `
import ctypes, ctypes.util
library, n = ctypes.CDLL(ctypes.util.find_library("ibverbs")), ctypes.c_int()
library.ibv_get_device_list.restype = ctypes.c_void_p
library.ibv_get_device_list(ctypes.byref(n))
print(n.value, "devices")`

// TestDlopen: Python's ctypes loads libibverbs at run time; perftest is linked with drivers of rdma-core.
func TestDlopen(t *testing.T) {
	n, _ := join(t, lab.Loopback, nil)
	for _, c := range [][]string{{"1 devices", "python3", "-c", loadWithPython}, {"Usage:", "ib_write_bw", "--help"},
		{"urdma0", "env", "-u", "LD_PRELOAD", "ibv_devices"}} {
		need(t, c[1])
		out, _ := n.Run(time.Minute, c[1:]...)
		if !strings.Contains(out, c[0]) {
			t.Errorf("%v:\n%s", c[1:], out)
		}
	}
	// It fails on a machine whose kernel has no RDMA, too.
	if out, _ := n.Run(time.Minute, "env", "-u", "LD_PRELOAD", "-u", "LD_LIBRARY_PATH",
		"ibv_devices"); strings.Contains(out, "urdma0") {
		t.Errorf("not undone:\n%s", out)
	}
}

// TestLimitedAddressSpace: a program runs with less address space than urdma needs to start, if the limit is set
// after urdma.
func TestLimitedAddressSpace(t *testing.T) {
	need(t, "rping")
	n, _ := join(t, lab.Loopback, nil)
	r, err := lab.Pair{ServerNode: n, ClientNode: n, Server: []string{"rping", "-s", "-C", "3", "-a", n.Address},
		Client: []string{"sh", "-c", "ulimit -v 400000; exec rping -c -v -C 3 -a " + n.Address}}.Run()
	if err != nil || strings.Count(r.Client, "ping data: rdma-ping-") != 3 {
		t.Errorf("%v\n%s", err, r.Client)
	}
}
