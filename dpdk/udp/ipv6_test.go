package udp

import (
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"urdma/dpdk/port"
	"urdma/dpdk/port/porttest"

	"golang.org/x/sys/unix"
)

// open6 makes a port at ::1.
func open6(t *testing.T, mtu int) tested {
	t.Helper()
	if l, err := net.ListenPacket("udp6", "[::1]:0"); err != nil {
		t.Skipf("this machine has no ::1: %v", err)
	} else {
		l.Close()
	}
	return openAt(t, netip.MustParseAddrPort("[::1]:0"), mtu)
}

// TestConformance6 is TestConformance with IPv6.
func TestConformance6(t *testing.T) {
	porttest.Run(t, func(t *testing.T) *porttest.Pair {
		a, b := open6(t, 1500), open6(t, 1500)
		return &porttest.Pair{A: a.Port, B: b.Port, PeerA: a.at, PeerB: b.at,
			Step:  func() { time.Sleep(10 * time.Microsecond) },
			Lossy: true, Interrupts: true}
	})
}

// TestDiscovery6: the socket follows a datagram's flags about the path's MTU, and later datagrams are sent as
// usual.
func TestDiscovery6(t *testing.T) {
	a, b := open6(t, 9000), open6(t, 9000)
	for i, how := range []port.Flags{port.TxFragment, 0, port.TxWhole, port.TxFragment, 0} {
		one := make([]port.Packet, 1)
		a.Alloc(one)
		one[0].Data, one[0].Peer, one[0].Flags = one[0].Data[:8000+i], b.at, how
		a.Tx(one)
		a.Flush()
		if got := receive(t, b); len(got.Data) != 8000+i || got.Peer != a.at {
			t.Errorf("%d: %d bytes from %v", i, len(got.Data), got.Peer)
		}
		size, err := unix.GetsockoptInt(a.own.fd, unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER)
		want := map[port.Flags]int{0: unix.IPV6_PMTUDISC_WANT, port.TxWhole: unix.IPV6_PMTUDISC_PROBE,
			port.TxFragment: unix.IPV6_PMTUDISC_DONT}[how]
		if err != nil || size != want {
			t.Errorf("%d: discovery %d, want %d (%v)", i, size, want, err)
		}
	}
}

// TestSockaddr6: a link-local peer gets the scope of the socket's interface, other peers none.
func TestSockaddr6(t *testing.T) {
	for _, scope := range []uint32{0, 7} {
		p := port.PeerOf(netip.MustParseAddrPort("[fe80::1:2]:30035"))
		var b [sockaddrLen]byte
		if n := putSockaddr(&b, false, scope, &p); n != unix.SizeofSockaddrInet6 || b[24] != byte(scope) || peerOf(&b) != p {
			t.Errorf("scope %d: %d bytes, % x", scope, n, b)
		}
	}
}

// TestShortMTU6: IPv6 requires an MTU of at least 1,280 bytes.
func TestShortMTU6(t *testing.T) {
	open6(t, 1280)
	_, err := Open(Options{Name: "x", Address: netip.MustParseAddrPort("[::1]:0"), MTU: 1279})
	if err == nil || !strings.Contains(err.Error(), "1280") {
		t.Error(err)
	}
}
