package e2e

import (
	"fmt"
	"strings"
	"testing"

	"urdma/test/lab"
	"urdma/test/lab/labtest"
)

// TestPing: a kernel on the same network finds urdmad's port by ARP or neighbour discovery, and gets answers to its
// pings, up to the MTU. Meanwhile programs connect as usual.
func TestPing(t *testing.T) {
	for _, w := range []lab.Wire{lab.AFPacket, lab.AFXDP, lab.AFPacket.Jumbo(), lab.AFPacket.V6(), lab.AFXDP.V6(),
		lab.AFPacket.Jumbo().V6()} {
		t.Run(w.Name, func(t *testing.T) {
			need(t, "ping")
			a, b := labtest.Join(t, w, nil)
			mtu := max(w.MTU, 1500)
			if w.Device == lab.AFXDP.Device { // the kernel of an XDP socket's interface gets no frames
				if err := b.StopDaemon(); err != nil {
					t.Fatal(err)
				}
			}
			headers := 28 // of IPv4 and ICMP
			if w.IPv6 {
				headers = 48
			}
			for _, size := range []int{0, 56, mtu - headers} {
				ping(t, b, a.Address, size)
			}
			knows(t, b, a)
			if !b.Daemon.Running() {
				if err := b.StartDaemon(); err != nil {
					t.Fatal(err)
				}
			}
			if w.IPv6 {
				rping6(t, a, b)
			} else {
				rping(t, a, b, a.Address)
			}
		})
	}
}

// ping sends from the node's kernel, which has an address in addition to the port's, until five pings are answered.
// Without -w, ping(8) waits for the last answer no longer than twice a round trip.
func ping(t *testing.T, from *lab.Node, to string, size int) {
	t.Helper()
	p, err := from.Start("ping", "-n", "-c", "5", "-i", "0.05", "-w", "30", "-M", "do", "-s", fmt.Sprint(size), to)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(lab.Patience); err != nil { // more than five may be answered
		t.Errorf("%d bytes from %s to %s: %v\n%s", size, from.Name, to, err, p.Output())
	}
}

// knows: the neighbour table of the node's kernel has the other node's port.
func knows(t *testing.T, n, other *lab.Node) {
	t.Helper()
	p, err := n.Start("ip", "neighbour", "show", "to", other.Address, "dev", "veth0")
	if err == nil {
		err = p.Wait(lab.Patience)
	}
	if err != nil || !strings.Contains(p.Output(), "lladdr") || strings.Contains(p.Output(), "FAILED") {
		t.Errorf("%v: the kernel of %s has no neighbour %s:\n%s", err, n.Name, other.Address, p.Output())
	}
}
