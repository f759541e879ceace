package test

import (
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"urdma/test/programtest"
	"urdma/verbs/abi"
)

// withTree gives the daemon a sysfs tree like urdmad's.
func withTree(t *testing.T) *fakeUrdmad {
	t.Helper()
	d := startUrdmad(t)
	d.sysfs = t.TempDir()
	for name, text := range map[string]string{
		"class/infiniband/urdma0/node_guid": "0000:00ff:fe00:0001\n",
		"dev/infiniband/uverbs0":            "",
	} {
		path := filepath.Join(d.sysfs, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o444); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("node_guid", filepath.Join(d.sysfs, "class/infiniband/urdma0/link")); err != nil {
		t.Fatal(err)
	}
	return d
}

// TestBuiltInPaths: a program that uses the kernel's paths finds urdmad's tree and device files there, and
// does not become a client of urdmad.
func TestBuiltInPaths(t *testing.T) {
	for _, fortify := range []string{"-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2"} {
		d := withTree(t)
		binary := programtest.Compile(t, filepath.Join(t.TempDir(), "paths"), "-O2", fortify, "testdata/alone/paths.c")
		if out, err := run(t, d, nil, binary); err != nil {
			t.Errorf("%s: %v\n%s", fortify, err, out)
		}
	}
}

// TestChosenTransport: the tree shows the transport that the program has chosen.
func TestChosenTransport(t *testing.T) {
	d := withTree(t)
	path := filepath.Join(d.sysfs, "transport/ib/class/infiniband/urdma0")
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(path, "node_type"), []byte("1: CA\n"), 0o444); err != nil {
		t.Fatal(err)
	}
	out, err := run(t, d, []string{"URDMA_TRANSPORT=ib"}, "cat", "/sys/class/infiniband/urdma0/node_type")
	if err != nil || !strings.HasSuffix(out, "1: CA\n") {
		t.Errorf("%v, %q", err, out)
	}
}

// TestProfilePaths: the PCI devices of a profile are among the machine's, and paths resolve to those in /sys; without
// a profile there are only the machine's.
func TestProfilePaths(t *testing.T) {
	d := withTree(t)
	const pci = "devices/pci7572:01/7572:01:00.0"
	root := filepath.Join(d.sysfs, "profile/cx6")
	for _, dir := range []string{pci + "/infiniband/mlx5_0", "class/infiniband", "class/pci_bus", "bus/pci/devices"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"class/infiniband/mlx5_0": "../../" + pci + "/infiniband/mlx5_0",
		pci + "/infiniband/mlx5_0/device": "../..", "class/pci_bus/7572:01": "../../devices/pci7572:01",
		"bus/pci/devices/7572:01:00.0": "../../../" + pci} {
		if err := os.Symlink(to, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	const script = `realpath /sys/class/infiniband/mlx5_0/device
readlink -f /sys/bus/pci/devices/7572:01:00.0
ls /sys/bus/pci/devices/ /sys/bus/pci/devices
ls -d /sys/class/pci_bus/7572:01/7572:01:00.0
cd /sys/bus/pci && ls devices`
	copy(d.device.Profile[:], "cx6")
	const want = "/sys/" + pci + "\n/sys/" + pci + "\n/sys/bus/pci/devices:\n7572:01:00.0\n\n" +
		"/sys/bus/pci/devices/:\n7572:01:00.0\n/sys/class/pci_bus/7572:01/7572:01:00.0\n7572:01:00.0\n"
	if out, err := run(t, d, nil, "sh", "-c", script); err != nil || out != want {
		t.Errorf("%v:\n%s", err, out)
	}
	clear(d.device.Profile[:])
	if out, _ := run(t, d, nil, "ls", "/sys/bus/pci/devices"); strings.Contains(out, "7572:") {
		t.Errorf("PCI devices without a profile:\n%s", out)
	}
}

// TestNobodysPaths: without a urdmad the paths are the kernel's.
func TestNobodysPaths(t *testing.T) {
	d := withTree(t)
	d.die()
	out, err := run(t, d, nil, "ls", "/sys/class/infiniband/urdma0")
	if err == nil || !strings.Contains(out, "No such file") {
		t.Errorf("%v, %q", err, out)
	}
}

// TestInterfaceAddresses: a port's address is the last in the list of interfaces' addresses; if the kernel
// has it, too, it is listed once.
func TestInterfaceAddresses(t *testing.T) {
	binary := programtest.Compile(t, filepath.Join(t.TempDir(), "paths"), "testdata/alone/paths.c")
	d := startUrdmad(t)
	out, err := run(t, d, nil, binary, "addresses")
	if err != nil || !strings.HasSuffix(out, "urdma0 10.1.2.3/255.255.255.0\n") || !strings.Contains(out, "lo 127.0.0.1") {
		t.Errorf("%v\n%s", err, out)
	}
	held := startUrdmad(t)
	held.device.Addr = abi.Addr{Family: syscall.AF_INET, Addr: [16]byte{127, 0, 0, 1}}
	out, err = run(t, held, nil, binary, "addresses")
	if err != nil || strings.Contains(out, "urdma0") {
		t.Errorf("the kernel holds the address: %v\n%s", err, out)
	}
	held.die()
	if out, err = run(t, held, nil, binary, "addresses"); err != nil || !strings.Contains(out, "lo 127.0.0.1") {
		t.Errorf("without a urdmad: %v\n%s", err, out)
	}
}

// TestInterfaceAddresses6: a link-local address has its link as scope; the same address on another link is
// another address.
func TestInterfaceAddresses6(t *testing.T) {
	binary := programtest.Compile(t, filepath.Join(t.TempDir(), "paths"), "testdata/alone/paths.c")
	for _, c := range []struct {
		address string
		scope   uint32
		want    string
	}{
		{"fe80::77:1", 7, "urdma0 fe80::77:1%7/ffff:ffff::\n"},
		{"fd00:9::1", 0, "urdma0 fd00:9::1%0/ffff:ffff::\n"},
	} {
		d := startUrdmad(t)
		addr, err := abi.AddrFrom(netip.AddrPortFrom(netip.MustParseAddr(c.address), 0))
		if err != nil {
			t.Fatal(err)
		}
		addr.ScopeID = c.scope
		d.device.Addr, d.device.PrefixLength = addr, 32
		if out, err := run(t, d, nil, binary, "addresses"); err != nil || !strings.HasSuffix(out, c.want) {
			t.Errorf("%v, expected %q at the end of\n%s", err, c.want, out)
		}
	}
}

// TestSameAddressElsewhere: a port may have a link-local address that the kernel has on another link.
func TestSameAddressElsewhere(t *testing.T) {
	address, scope := linkLocal(t)
	binary := programtest.Compile(t, filepath.Join(t.TempDir(), "paths"), "testdata/alone/paths.c")
	for _, c := range []struct {
		scope uint32
		added bool
	}{{scope, false}, {scope + 1000, true}, {0, false}} {
		d := startUrdmad(t)
		addr, err := abi.AddrFrom(netip.AddrPortFrom(address, 0))
		if err != nil {
			t.Fatal(err)
		}
		addr.ScopeID = c.scope
		d.device.Addr = addr
		if out, err := run(t, d, nil, binary, "addresses"); err != nil || strings.Contains(out, "urdma0") != c.added {
			t.Errorf("scope %d, the kernel's is %d: %v\n%s", c.scope, scope, err, out)
		}
	}
}

// linkLocal returns a link-local address of this machine and its interface's index.
func linkLocal(t *testing.T) (netip.Addr, uint32) {
	t.Helper()
	all, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range all {
		addrs, _ := i.Addrs()
		for _, a := range addrs {
			if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is6() && p.Addr().IsLinkLocalUnicast() {
				return p.Addr(), uint32(i.Index)
			}
		}
	}
	t.Skip("SKIPPED: needs an interface with a link-local IPv6 address")
	return netip.Addr{}, 0
}
