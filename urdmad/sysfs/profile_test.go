package sysfs

import (
	"bytes"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"urdma/verbs/personality"
)

// TestProfiles: devices are on PCI devices and numbered from 0, a device of several ports as one; what changes is
// shown there, too.
func TestProfiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "sys")
	one := Device{Port: Port{"urdma0", 1}, Driver: "udp", Interface: "eth7", Personality: personality.Named("iwarp"),
		Is: personality.Port{MAC: [6]byte{2, 5: 1}, Addr: netip.MustParseAddr("10.9.0.1")}}
	first, second, last := one, one, one
	first.Port, second.Port, last.Port = Port{"hca0", 1}, Port{"hca0", 2}, Port{"urdma3", 1}
	second.Interface, last.Interface = "eth8", ""
	if err := Write(dir, []Device{one, first, second, last}); err != nil {
		t.Fatal(err)
	}
	if err := SetLink(dir, second.Port, true); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"cx6/class/infiniband/mlx5_0/node_type":                      "1: CA",
		"cx6/class/infiniband/mlx5_1/ports/1/state":                  "1: DOWN",
		"cx6/class/infiniband/mlx5_1/ports/2/state":                  "4: ACTIVE",
		"cx6/class/infiniband/mlx5_1/device/net/eth8/address":        "02:00:00:00:00:01",
		"cx6/class/infiniband/mlx5_2/device/net/urdma3/address":      "02:00:00:00:00:01",
		"cx6/class/infiniband/mlx5_2/ports/1/gid_attrs/types/3":      "RoCE v2",
		"cx6/class/infiniband/mlx5_2/ports/1/counters/port_rcv_data": "0",
		"cx6/class/infiniband_verbs/uverbs3/ibdev":                   "mlx5_2",
		"cx6/class/infiniband_verbs/uverbs3/device/device":           "0x101b",
		"cx6/bus/pci/devices/7572:02:00.0/infiniband/mlx5_1/fw_ver":  "20.41.1000",
		"cx6/class/pci_bus/7572:03/../../7572:03:00.0/vendor":        "0x15b3",
		"cx6-ib/class/infiniband_mad/umad2/ibdev":                    "mlx5_1",
		"cx6-ib/class/infiniband_mad/umad2/port":                     "2",
		"cx6-ib/class/infiniband/mlx5_0/device/class":                "0x020700",
		"e810/class/infiniband/irdma0/node_desc":                     "",
		"t6/class/infiniband/cxgb4_1/board_id":                       "1425.6408",
		"t6/class/infiniband/cxgb4_1/node_type":                      "4: RNIC",
	} {
		// not filepath.Join, which would resolve ".." itself
		b, err := os.ReadFile(dir + "/profile/" + path)
		if err != nil || string(b) != want+"\n" {
			t.Errorf("%s is %q (%v), expected %q", path, b, err, want)
		}
	}
	for path, want := range map[string]string{
		"cx6/class/infiniband/mlx5_1":               "cx6/devices/pci7572:02/7572:02:00.0/infiniband/mlx5_1",
		"cx6/class/infiniband/mlx5_1/device":        "cx6/devices/pci7572:02/7572:02:00.0",
		"cx6/class/infiniband/mlx5_1/device/driver": "cx6/bus/pci/drivers/mlx5_core",
		"t6/bus/pci/drivers/cxgb4/7572:01:00.4":     "t6/devices/pci7572:01/7572:01:00.4",
	} {
		got, err := filepath.EvalSymlinks(filepath.Join(dir, "profile", path))
		if err != nil || got != filepath.Join(dir, "profile", want) {
			t.Errorf("%s leads to %s (%v), expected %s", path, got, err, want)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "profile/e810/class/infiniband/irdma0/board_id")); err == nil {
		t.Error("an irdma device has a board_id")
	}
}

// TestProfileLinks: no link dangles.
func TestProfileLinks(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "sys")
	d := Device{Port: Port{"urdma0", 1}, Personality: personality.Named("ib"),
		Is: personality.Port{Addr: netip.MustParseAddr("10.9.0.1")}}
	if err := Write(dir, []Device{d}); err != nil {
		t.Fatal(err)
	}
	links := 0
	err := filepath.WalkDir(filepath.Join(dir, "profile"), func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type() == fs.ModeSymlink {
			links++
			_, err = os.Stat(path)
		}
		return err
	})
	if err != nil || links == 0 {
		t.Errorf("%d links, %v", links, err)
	}
}

// TestMachineDevices: a profile's list of PCI devices has the machine's own, too.
func TestMachineDevices(t *testing.T) {
	own, err := os.ReadDir(machine)
	if err != nil || len(own) == 0 {
		t.Skip("this machine shows no PCI devices")
	}
	dir := filepath.Join(t.TempDir(), "sys")
	d := Device{Port: Port{"urdma0", 1}, Personality: personality.Named("ib"),
		Is: personality.Port{Addr: netip.MustParseAddr("10.9.0.1")}}
	if err := Write(dir, []Device{d}); err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadDir(filepath.Join(dir, "profile/cx6/bus/pci/devices"))
	if err != nil || len(list) != len(own)+1 {
		t.Errorf("%d PCI devices, %v; expected %d", len(list), err, len(own)+1)
	}
	vendor := filepath.Join(own[0].Name(), "vendor")
	want, _ := os.ReadFile(filepath.Join(machine, vendor))
	if got, err := os.ReadFile(filepath.Join(dir, "profile/cx6/bus/pci/devices", vendor)); !bytes.Equal(got, want) {
		t.Errorf("%s is %q (%v), expected %q", vendor, got, err, want)
	}
}

func TestConfigSpace(t *testing.T) {
	b := configSpace(&personality.ProfileNamed("e810").PCI)
	for at, want := range map[int]string{
		0x00: "\x86\x80\x92\x15", // vendor and device
		0x08: "\x02\x00\x00\x02", // revision, class
		0x2c: "\x86\x80\x02\x00", // subsystem
		0x34: "\x40",             // the first capability
		0x40: "\x10\x00\x02\x00", // PCI Express, version 2, an endpoint
		0x4c: "\x04\x01\x00\x00", // 16 GT/s, 16 lanes
		0x52: "\x04\x01",         // the same now
	} {
		if !strings.HasPrefix(b[at:], want) {
			t.Errorf("at 0x%02x: % x, expected % x", at, b[at:at+len(want)], want)
		}
	}
	if len(b) != 256 {
		t.Errorf("%d bytes", len(b))
	}
}

func TestCPUMask(t *testing.T) {
	for list, want := range map[string]string{"0": "1", "0-3,8": "10f", "0-31": "ffffffff", "0-63": "ffffffff,ffffffff",
		"33": "2,00000000", "": ""} {
		if got := cpuMask(list); got != want {
			t.Errorf("%q: %q, expected %q", list, got, want)
		}
	}
}
