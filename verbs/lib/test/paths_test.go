package test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"urdma/verbs/abi"
)

// withTree gives the daemon a tree like the one that urdmad keeps.
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

// TestBuiltInPaths: a program with the kernel's paths in it finds urdmad's tree
// and device nodes there, and takes no place among urdmad's clients.
func TestBuiltInPaths(t *testing.T) {
	for _, fortify := range []string{"-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2"} {
		d := withTree(t)
		binary := compile(t, filepath.Join(t.TempDir(), "paths"), "-O2", fortify, "testdata/alone/paths.c")
		if out, err := run(t, d, nil, binary); err != nil {
			t.Errorf("%s: %v\n%s", fortify, err, out)
		}
	}
}

// TestChosenTransport: the tree is that of the transport which the program chose.
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
	if err != nil || out != "1: CA\n" {
		t.Errorf("%v, %q", err, out)
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

// TestInterfaceAddresses: a port's address is among those of the interfaces, the
// last; once only where the kernel has it.
func TestInterfaceAddresses(t *testing.T) {
	binary := compile(t, filepath.Join(t.TempDir(), "paths"), "testdata/alone/paths.c")
	d := startUrdmad(t)
	out, err := run(t, d, nil, binary, "addresses")
	if err != nil || !strings.HasSuffix(out, "urdma0 10.1.2.3/255.255.255.0\n") || !strings.Contains(out, "lo 127.0.0.1") {
		t.Errorf("%v\n%s", err, out)
	}
	held := startUrdmad(t)
	held.device.Addr = abi.AddrFrom4([4]byte(net.IPv4(127, 0, 0, 1).To4()), 0)
	out, err = run(t, held, nil, binary, "addresses")
	if err != nil || strings.Contains(out, "urdma0") {
		t.Errorf("the kernel holds the address: %v\n%s", err, out)
	}
	held.die()
	if out, err = run(t, held, nil, binary, "addresses"); err != nil || !strings.Contains(out, "lo 127.0.0.1") {
		t.Errorf("without a urdmad: %v\n%s", err, out)
	}
}
