package sysfs

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"urdma/verbs/personality"
)

func TestTree(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "sys")
	d := Device{Port: Port{"urdma0", 1}, GUID: [8]byte{3: 0xff, 4: 0xfe, 7: 1}, Firmware: "1.2.3",
		Is: personality.Port{MAC: [6]byte{2, 0, 0, 0, 0, 1}, Addr: netip.MustParseAddr("10.9.0.1")}}
	const mapped, linkLocal = "0000:0000:0000:0000:0000:ffff:0a09:0001", "fe80:0000:0000:0000:0000:5efe:0a09:0001"
	for transport, want := range map[string]struct {
		node, link, lid string
		gids, types     []string
	}{
		"iwarp": {"4: RNIC", "Ethernet", "0x0", []string{mapped}, []string{"IB/RoCE v1"}},
		"roce": {"1: CA", "Ethernet", "0x0", []string{linkLocal, linkLocal, mapped, mapped},
			[]string{"IB/RoCE v1", "RoCE v2", "IB/RoCE v1", "RoCE v2"}},
		"ib": {"1: CA", "InfiniBand", "0x1", []string{"fe80:0000:0000:0000:0000:00ff:fe00:0001"},
			[]string{"IB/RoCE v1"}},
	} {
		d.Personality = personality.Named(transport)
		if err := Write(dir, []Device{d}); err != nil {
			t.Fatal(err)
		}
		files := map[string]string{
			"class/infiniband/urdma0/node_type":          want.node,
			"class/infiniband/urdma0/ports/1/link_layer": want.link,
			"class/infiniband/urdma0/ports/1/lid":        want.lid,
			"class/infiniband/urdma0/node_guid":          "0000:00ff:fe00:0001",
			"class/infiniband_verbs/uverbs0/ibdev":       "urdma0",
			"class/infiniband_verbs/abi_version":         "6",
		}
		for i, gid := range want.gids {
			files[fmt.Sprint("class/infiniband/urdma0/ports/1/gids/", i)] = gid
			files[fmt.Sprint("class/infiniband/urdma0/ports/1/gid_attrs/types/", i)] = want.types[i]
		}
		if n, err := os.ReadDir(filepath.Join(dir, "class/infiniband/urdma0/ports/1/gids")); len(n) != len(want.gids) {
			t.Errorf("%s: %d GIDs (%v), expected %d", transport, len(n), err, len(want.gids))
		}
		for name, text := range files {
			b, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil || string(b) != text+"\n" {
				t.Errorf("%s: %s is %q (%v), expected %q", transport, name, b, err, text)
			}
		}
	}
	if err := Remove(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the tree is still there: %v", err)
	}
}

// TestLink: the port's state follows its link.
func TestLink(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "sys")
	d := Device{Port: Port{"urdma0", 1}, Personality: personality.Named("iwarp"),
		Is: personality.Port{Addr: netip.MustParseAddr("10.9.0.1")}}
	for _, written := range []bool{false, true} {
		d.Up = written
		if err := Write(dir, []Device{d}); err != nil {
			t.Fatal(err)
		}
		expectState(t, dir, written)
		if err := SetLink(dir, Port{"urdma0", 1}, !written); err != nil {
			t.Fatal(err)
		}
		expectState(t, dir, !written)
	}
}

func expectState(t *testing.T, dir string, up bool) {
	t.Helper()
	want := map[string]string{"state": "1: DOWN\n", "phys_state": "3: Disabled\n"}
	if up {
		want = map[string]string{"state": "4: ACTIVE\n", "phys_state": "5: LinkUp\n"}
	}
	for name, text := range want {
		if b, err := os.ReadFile(filepath.Join(dir, "class/infiniband/urdma0/ports/1", name)); err != nil ||
			string(b) != text {
			t.Errorf("up %v: %s is %q (%v), want %q", up, name, b, err, text)
		}
	}
}

// TestForeign: a directory that was named by mistake is not touched.
func TestForeign(t *testing.T) {
	dir := t.TempDir()
	precious := filepath.Join(dir, "precious")
	if err := os.WriteFile(precious, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Write(dir, nil); !errors.Is(err, ErrForeign) {
		t.Errorf("Write: %v", err)
	}
	if err := Remove(dir); !errors.Is(err, ErrForeign) {
		t.Errorf("Remove: %v", err)
	}
	if _, err := os.Stat(precious); err != nil {
		t.Error(err)
	}
}

// TestEmptyDirectory: a full disk leaves an empty directory, as a directory needs no room. The next start replaces
// it; a regular file belongs to no tree.
func TestEmptyDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "sys")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Write(dir, nil); err != nil {
		t.Errorf("Write: %v", err)
	}
	if err := Remove(dir); err != nil {
		t.Errorf("Remove: %v", err)
	}
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Remove(dir); !errors.Is(err, ErrForeign) {
		t.Errorf("Remove of a regular file: %v", err)
	}
}

// TestFailedWrite: files made before a failure are removed.
func TestFailedWrite(t *testing.T) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	signal.Ignore(unix.SIGXFSZ)
	defer signal.Reset(unix.SIGXFSZ)
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 0, Max: limit.Max}); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "sys")
	err := Write(dir, nil)
	removed := Remove(dir)
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	if err == nil {
		t.Error("Write without room for a byte succeeded")
	}
	if removed != nil {
		t.Errorf("Remove: %v", removed)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is left: %v", dir, err)
	}
}

// TestLinkIsNeverTorn: a program that reads the state while it changes gets the old or the new one.
func TestLinkIsNeverTorn(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "sys")
	d := Device{Port: Port{"urdma0", 1}, Personality: personality.Named("iwarp"),
		Is: personality.Port{Addr: netip.MustParseAddr("10.9.0.1")}}
	if err := Write(dir, []Device{d}); err != nil {
		t.Fatal(err)
	}
	stop, stopped := make(chan struct{}), make(chan error)
	go func() {
		for up := true; ; up = !up {
			select {
			case <-stop:
				stopped <- nil
				return
			default:
			}
			if err := SetLink(dir, Port{"urdma0", 1}, up); err != nil {
				stopped <- err
				return
			}
		}
	}()
	for range 5000 {
		b, err := os.ReadFile(filepath.Join(dir, "class/infiniband/urdma0/ports/1/state"))
		if s := string(b); err != nil || s != "4: ACTIVE\n" && s != "1: DOWN\n" {
			t.Errorf("the state is %q (%v)", s, err)
			break
		}
	}
	close(stop)
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

// TestTransports: in addition to the configured one there is a tree for each transport that a program may choose,
// with the same counters and link.
func TestTransports(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "sys")
	d := Device{Port: Port{"urdma0", 1}, Driver: "memif", Personality: personality.Named("iwarp"),
		Is: personality.Port{Addr: netip.MustParseAddr("10.9.0.1")}}
	if err := Write(dir, []Device{d, {Port: Port{"urdma1", 1}, Personality: d.Personality, Is: d.Is}}); err != nil {
		t.Fatal(err)
	}
	if err := SetLink(dir, Port{"urdma0", 1}, true); err != nil {
		t.Fatal(err)
	}
	if err := SetSubnet(dir, Port{"urdma0", 1},
		Subnet{LID: 0x12, SMLID: 0x34, SMSL: 1, State: 4, Phys: 5, CapabilityMask: 0x2010840}); err != nil {
		t.Fatal(err)
	}
	if err := SetCounters(dir, Port{"urdma0", 1}, Counters{RxPackets: 7, RxBytes: 404, TxBytes: 808}, nil); err != nil {
		t.Fatal(err)
	}
	for root, want := range map[string]map[string]string{
		"":             {"node_type": "4: RNIC", "ports/1/lid": "0x0"},
		Shown("iwarp"): {"node_type": "4: RNIC", "ports/1/link_layer": "Ethernet"},
		Shown("ib"): {"node_type": "1: CA", "ports/1/lid": "0x12", "ports/1/sm_lid": "0x34", "ports/1/sm_sl": "1",
			"ports/1/lid_mask_count": "0",
			"ports/1/phys_state":     "5: LinkUp", "ports/1/cap_mask": "0x02010840",
			"../../infiniband_mad/umad1/ibdev": "urdma1",
			"../../infiniband_mad/umad1/port":  "1",
			"../../infiniband_mad/umad1/dev":   "231:1", "../../infiniband_mad/issm1/dev": "231:65",
			"../../../dev/infiniband/issm0": ""},
		Shown("roce"): {"node_type": "1: CA", "ports/1/gid_attrs/types/3": "RoCE v2", "ports/1/cap_mask": "0x04010000"},
	} {
		for name, text := range map[string]string{"board_id": "urdma-memif", "hca_type": "urdma", "device/numa_node": "-1",
			"ports/1/state":                     "4: ACTIVE",
			"ports/1/counters/port_rcv_packets": "7", "ports/1/counters/port_rcv_data": "101",
			"ports/1/counters/port_xmit_data": "202",
			"ports/1/hw_counters/rx_bytes":    "404", "../../infiniband_verbs/uverbs1/ibdev": "urdma1",
			"../../infiniband_verbs/uverbs1/dev": "231:193",
			"../../infiniband_mad/abi_version":   "5", "../../../dev/infiniband/uverbs1": "",
			"../../../dev/infiniband/rdma_cm": ""} {
			if want[name] == "" {
				want[name] = text
			}
		}
		for name, text := range want {
			b, err := os.ReadFile(filepath.Join(dir, root, "class/infiniband/urdma0", name))
			if err != nil || string(b) != text+"\n" {
				t.Errorf("%s/%s is %q (%v), expected %q", root, name, b, err, text)
			}
		}
	}
}

// TestInterface: a port on a network interface names it where programs look (ibdev2netdev, show_gids); a port without
// an interface names none.
func TestInterface(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "sys")
	d := Device{Port: Port{"urdma0", 1}, Driver: "udp", Interface: "eth7", Personality: personality.Named("roce"),
		Is: personality.Port{Addr: netip.MustParseAddr("10.9.0.1")}}
	if err := Write(dir, []Device{d, {Port: Port{"urdma1", 1}, Personality: d.Personality, Is: d.Is}}); err != nil {
		t.Fatal(err)
	}
	for _, root := range []string{"", Shown("ib")} {
		class := filepath.Join(dir, root, "class/infiniband")
		below, err := os.ReadDir(filepath.Join(class, "urdma0/device/net"))
		if err != nil || len(below) != 1 || below[0].Name() != "eth7" {
			t.Errorf("%s: below urdma0 are %v (%v)", root, below, err)
		}
		if name, err := os.ReadFile(filepath.Join(class, "urdma0/ports/1/gid_attrs/ndevs/0")); string(name) != "eth7\n" {
			t.Errorf("%s: the GID is of %q (%v)", root, name, err)
		}
		if _, err := os.Stat(filepath.Join(class, "urdma1/device/net")); err == nil {
			t.Errorf("%s: urdma1 has an interface below", root)
		}
	}
}
