package programs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"urdma/test/lab"
	"urdma/test/programtest"
)

// shows runs a program as a profile and looks for texts in what it prints, in this order.
func shows(t *testing.T, n *lab.Node, profile string, argv []string, want ...string) {
	t.Helper()
	need(t, argv[0])
	out, err := n.Urdma(append([]string{"exec", "--profile", profile, "--"}, argv...)...)
	if err != nil {
		t.Errorf("%v as %s: %v", argv, profile, err)
	}
	rest := out
	for _, w := range want {
		before, after, found := strings.Cut(rest, w)
		if !found {
			t.Errorf("%v as %s doesn't print %q after %d bytes:\n%s", argv, profile, w, len(out)-len(before), out)
			return
		}
		rest = after
	}
}

// twoDevices starts a urdmad with a device of one port and one of two ports.
func twoDevices(t *testing.T) *lab.Node {
	t.Helper()
	n, _ := join(t, lab.Loopback, nil)
	more := func(i int) lab.Config {
		return lab.Config{"vdev": "loopback", "ipv4_address": fmt.Sprintf("198.18.7%d.1/24", i), "device": "hca0"}
	}
	first := lab.Config{"vdev": "loopback", "ipv4_address": n.Address + "/24"}
	for _, do := range []func() error{n.StopDaemon,
		func() error { return n.Change("ports", []any{first, more(1), more(2)}) }, n.StartDaemon} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

// TestProfiles: tools show the devices as a profile's.
func TestProfiles(t *testing.T) {
	n := twoDevices(t)
	for _, c := range []struct {
		profile string
		argv    []string
		want    []string
	}{
		{"cx6", []string{"ibv_devices"}, []string{"mlx5_0 ", "mlx5_1 "}},
		{"cx6", []string{"ibv_devinfo", "-v"}, []string{"hca_id:\tmlx5_0", "InfiniBand (0)", "fw_ver:\t\t\t\t20.41.1000",
			"vendor_id:\t\t\t0x02c9", "vendor_part_id:\t\t\t4123", "hw_ver:\t\t\t\t0x0", "board_id:\t\t\tMT_0000000225",
			"phys_port_cnt:\t\t\t1", "Ethernet", "GID[  3]", "RoCE v2", "hca_id:\tmlx5_1", "phys_port_cnt:\t\t\t2"}},
		{"cx6", []string{"ibstat"}, []string{"CA 'mlx5_0'", "CA type: MT4123", "Firmware version: 20.41.1000",
			"State: Active", "Link layer: Ethernet", "CA 'mlx5_1'", "Number of ports: 2"}},
		{"cx6", []string{"rdma", "link"}, []string{"link mlx5_0/1 state ACTIVE", "link mlx5_1/1 ", "link mlx5_1/2 "}},
		{"cx6", []string{"ls", "-l", "/sys/class/infiniband/mlx5_1/device/infiniband"}, []string{"mlx5_1"}},
		{"cx6", []string{"cat", "/sys/class/infiniband/mlx5_1/ports/2/state"}, []string{"4: ACTIVE"}},
		{"cx6-ib", []string{"ibv_devinfo"}, []string{"mlx5_0", "InfiniBand"}},
		{"cx6-ib", []string{"ibstat", "mlx5_1", "2"}, []string{"State: Active", "Link layer: InfiniBand"}},
		{"e810", []string{"ibv_devinfo"}, []string{"irdma0", "1.54", "0x8086", "5522", "0x2", "Ethernet", "irdma1"}},
		{"e810", []string{"rdma", "link"}, []string{"link irdma0/1 state ACTIVE"}},
		{"t6", []string{"ibv_devinfo"}, []string{"cxgb4_0", "iWARP (1)", "0x1425", "25608", "1425.6408", "cxgb4_1"}},
	} {
		t.Run(c.profile+" "+c.argv[0], func(t *testing.T) {
			if c.argv[0] == "rdma" && lab.Core() {
				t.Skip("rdma asks what is attached to urdmad; URDMA_DAEMON names one without")
			}
			shows(t, n, c.profile, c.argv, c.want...)
		})
	}
}

// TestProfilePrograms: unmodified programs find the devices by their names, and transfer.
func TestProfilePrograms(t *testing.T) {
	n := twoDevices(t)
	t.Run("pyverbs", func(t *testing.T) {
		if exec.Command("/usr/bin/python3", "-c", "import pyverbs.device").Run() != nil {
			t.Skip("python3-pyverbs is not installed; make deps")
		}
		shows(t, n, "cx6", []string{"/usr/bin/python3", "-c", `
from pyverbs.device import Context
from pyverbs.providers.mlx5.mlx5dv import Mlx5Context, Mlx5DVContextAttr
d = Context(name="mlx5_1").query_device()
print(hex(d.vendor_id), d.vendor_part_id, d.phys_port_cnt)
try:
    Mlx5Context(Mlx5DVContextAttr(), "mlx5_0")
except Exception:
    print("no direct verbs")`}, "0x2c9 4123 2", "no direct verbs")
	})
	t.Run("hwloc", func(t *testing.T) {
		shows(t, n, "cx6", []string{"lstopo-no-graphics", "--of", "console"},
			"PCI 7572:01:00.0 (Ethernet)\n      OpenFabrics \"mlx5_0\"",
			"PCI 7572:02:00.0 (Ethernet)\n      OpenFabrics \"mlx5_1\"")
		shows(t, n, "cx6-ib", []string{"lstopo-no-graphics", "--of", "console"}, "PCI 7572:01:00.0 (InfiniBand)")
	})
	t.Run("lspci", func(t *testing.T) {
		shows(t, n, "cx6", []string{"lspci", "-n", "-v", "-d", "15b3:"}, "7572:01:00.0 0200: 15b3:101b",
			"Kernel driver in use: mlx5_core", "7572:02:00.0 0200: 15b3:101b")
	})
	t.Run("UCX", func(t *testing.T) {
		shows(t, n, "cx6", []string{"ucx_info", "-d"}, "Transport: rc_verbs", "Device: mlx5_0:1", "System device: mlx5_0",
			"Device: mlx5_1:1", "System device: mlx5_1")
	})
	t.Run("topology", func(t *testing.T) {
		program := programtest.Compile(t, filepath.Join(n.Directory(), "topology"), "testdata/topology.c", "-libverbs")
		shows(t, n, "cx6", []string{program},
			"mlx5_0: 7572:01:00.0 class 0x020000 vendor 0x15b3 device 0x101b subsystem 0x15b3:0x0009 max 16.0 GT/s PCIe x16",
			"mlx5_0: 1 level below /sys/devices/pci7572:01, node ", "mlx5_0: bus 1, 16 GT/s times 16, node ",
			"mlx5_1: 7572:02:00.0 ")
	})
}

// TestConnectXScript: a script written for ConnectX adapters runs unchanged.
func TestConnectXScript(t *testing.T) {
	need(t, "ib_write_bw")
	need(t, "ibv_devinfo")
	n := twoDevices(t)
	script := filepath.Join(n.Directory(), "connectx.sh") // where the node's user may read it
	text, err := os.ReadFile("../../examples/connectx.sh")
	if err == nil {
		err = os.WriteFile(script, text, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	shows(t, n, "cx6", []string{"env", fmt.Sprint("PORT=", programtest.FreePort(t)), script},
		"NCCL_IB_HCA==mlx5_0:1,mlx5_1:1,mlx5_1:2 NCCL_IB_GID_INDEX=3", "mlx5_0 port 1 ==> ",
		"mlx5_1 MT4123 is 7572:02:00.0, mlx5_core, 16.0 GT/s PCIe x16, node ", "active ports: 3",
		"Device         : mlx5_0", "GID index       : 3", "65536      100")
}

// TestConfiguredProfile: the setting applies to programs that choose nothing.
func TestConfiguredProfile(t *testing.T) {
	n, _ := join(t, lab.Loopback, lab.Config{"profile": "cx6"})
	for _, c := range []struct {
		flags []string
		want  string
	}{{nil, "mlx5_0"}, {[]string{"--profile", "e810"}, "irdma0"}, {[]string{"--transport", "roce"}, "urdma0"}} {
		argv := append(append([]string{"exec"}, c.flags...), "--", "ls", "/sys/class/infiniband")
		if out, err := n.Urdma(argv...); err != nil || strings.TrimSpace(out) != c.want {
			t.Errorf("%v: %v\n%s", c.flags, err, out)
		}
	}
	if lab.Core() {
		return // without what answers rdma
	}
	need(t, "rdma")
	if out, err := n.Run(lab.Patience, "rdma", "link"); err != nil || !strings.Contains(out, "mlx5_0/1") {
		t.Errorf("%v\n%s", err, out)
	}
}
