package serve

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"urdma/config"
	"urdma/dpdk/port"
)

// TestClaimAddress: an address on an interface belongs to one urdmad; a second one gets an error.
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

// onInterface makes a port on a network interface with this name.
type onInterface struct {
	port.Port
	name string
}

func (p onInterface) Info() port.Info { return port.Info{Interface: p.name} }

// TestOneAddressOfTwo: of two urdmads with one address on one interface the second warns.
func TestOneAddressOfTwo(t *testing.T) {
	claims := func(vdev, address string) (*Core, string) {
		var log strings.Builder
		d := &Core{Log: slog.New(slog.NewTextHandler(&log, nil)), Ports: []port.Port{onInterface{name: "lo"}},
			Config: &config.Config{Ports: []config.Port{{Name: "urdma0", Vdev: vdev, Address: netip.MustParsePrefix(address)}}}}
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
	for _, part := range []string{"another urdmad has the port's address", "port=urdma0", "address=198.18.77.2",
		"interface=lo", fmt.Sprintf("process=%d", os.Getpid())} {
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
