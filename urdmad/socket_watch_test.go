package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"urdma/config"
	"urdma/dpdk/port"
)

// TestSocketRemoved: a urdmad whose socket, directory or tree is removed makes them anew,
// as often as that happens.
func TestSocketRemoved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	src := written(t, dir, "")
	stop := served(t, src)
	socket, tree := filepath.Join(dir, "urdmad.sock"), filepath.Join(dir, "urdmad.sysfs", "class", "infiniband", "urdma0")
	for _, gone := range []string{socket, socket, dir, socket} {
		if err := os.RemoveAll(gone); err != nil && !errors.Is(err, unix.ENOTEMPTY) { // where urdmad was faster
			t.Fatal(err)
		}
		for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
			_, err := os.Stat(tree)
			if c, refused := net.Dial("unixpacket", socket); err == nil && refused == nil {
				c.Close()
				break
			}
			if time.Now().After(end) {
				t.Fatalf("%s was removed, and nobody made it anew: %v", gone, err)
			}
		}
		if c, status := greet(t, socket); status != 0 {
			t.Fatal(status)
		} else {
			c.Close()
		}
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*.s*s*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// TestSocketReplaced: a urdmad leaves alone what another process has put in its socket's
// place.
func TestSocketReplaced(t *testing.T) {
	dir := t.TempDir()
	stop := served(t, written(t, dir, ""))
	socket := filepath.Join(dir, "urdmad.sock")
	other, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: socket + ".new", Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	other.SetUnlinkOnClose(false)
	defer other.Close()
	theirs, err := os.Lstat(socket + ".new")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(socket+".new", socket); err != nil {
		t.Fatal(err)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if now, err := os.Lstat(socket); err != nil || !os.SameFile(now, theirs) {
		t.Errorf("the other process's socket: %v, %v", now, err)
	}
}

// TestClaimAddress: an address on an interface is one urdmad's, which the second is told.
func TestClaimAddress(t *testing.T) {
	a, b := netip.MustParseAddr("198.18.77.1"), netip.MustParseAddr("fd00::77")
	first, _, err := claimAddress(1<<30, a)
	if err != nil {
		t.Fatal(err)
	}
	if _, holder, err := claimAddress(1<<30, a); !errors.Is(err, unix.EADDRINUSE) || holder != os.Getpid() {
		t.Errorf("a second time: %v, held by %d, expected EADDRINUSE, %d", err, holder, os.Getpid())
	}
	for _, other := range []struct {
		index uint32
		addr  netip.Addr
	}{{1<<30 + 1, a}, {1 << 30, b}} {
		c, _, err := claimAddress(other.index, other.addr)
		if err != nil {
			t.Errorf("%v: %v", other, err)
			continue
		}
		defer c.Close()
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	again, _, err := claimAddress(1<<30, a)
	if err != nil {
		t.Fatalf("after its end: %v", err)
	}
	again.Close()
}

// onInterface is a port of a network interface's name.
type onInterface struct {
	port.Port
	name string
}

func (p onInterface) Info() port.Info { return port.Info{Interface: p.name} }

// TestOneAddressOfTwo: of two urdmads with one address on one interface the second warns.
func TestOneAddressOfTwo(t *testing.T) {
	claims := func(vdev, address string) (*daemon, string) {
		var log strings.Builder
		d := &daemon{log: &logger{Logger: slog.New(slog.NewTextHandler(&log, nil))}, ports: []port.Port{onInterface{name: "lo"}},
			cfg: &config.Config{Ports: []config.Port{{Name: "urdma0", Vdev: vdev, Address: netip.MustParsePrefix(address)}}}}
		d.claimAddresses()
		t.Cleanup(func() {
			for _, c := range d.claims {
				c.Close()
			}
		})
		return d, log.String()
	}
	const vdev = "net_af_packet0,iface=lo"
	if d, log := claims(vdev, "198.18.77.2/24"); log != "" || len(d.claims) != 1 {
		t.Fatalf("the first: %d addresses are claimed, %q", len(d.claims), log)
	}
	for _, part := range []string{"another urdmad has the port's address", "port=urdma0", "address=198.18.77.2", "interface=lo", fmt.Sprintf("process=%d", os.Getpid())} {
		if d, log := claims("net_af_xdp1,iface=lo", "198.18.77.2/16"); !strings.Contains(log, part) || len(d.claims) != 0 {
			t.Errorf("the second: %d addresses are claimed, and %q does not say %q", len(d.claims), log, part)
		}
	}
	for _, other := range []struct{ vdev, address string }{{vdev, "198.18.77.3/24"}, {"udp", "198.18.77.2/24"}} {
		if _, log := claims(other.vdev, other.address); log != "" {
			t.Errorf("%+v: %q", other, log)
		}
	}
}
