package e2e

import (
	"fmt"
	"testing"

	"urdma/test/lab"
	"urdma/test/lab/labtest"
)

// TestPing: a kernel on the same network finds urdmad's port by ARP and gets
// answers to its pings, up to the MTU, beside which programs connect as ever.
func TestPing(t *testing.T) {
	for _, w := range []lab.Wire{lab.AFPacket, lab.AFXDP, lab.AFPacket.Jumbo()} {
		t.Run(w.Name, func(t *testing.T) {
			need(t, "ping")
			a, b := labtest.Join(t, w, nil)
			mtu := max(w.MTU, 1500)
			if w.Name == lab.AFXDP.Name { // the kernel of an XDP socket's interface gets no frames
				if err := b.StopDaemon(); err != nil {
					t.Fatal(err)
				}
			}
			for _, size := range []int{0, 56, mtu - 28} { // 28: IPv4 and ICMP headers
				ping(t, b, a.Address, size)
			}
			if !b.Daemon.Running() {
				if err := b.StartDaemon(); err != nil {
					t.Fatal(err)
				}
			}
			rping(t, a, b, a.Address)
		})
	}
}

// ping sends from the node's kernel, which has an address beside the port's, until
// five are answered: without -w, ping(8) waits for the last no longer than twice what
// an answer took.
func ping(t *testing.T, from *lab.Node, to string, size int) {
	t.Helper()
	p, err := from.Start("ping", "-n", "-c", "5", "-i", "0.05", "-w", "30", "-M", "do", "-s", fmt.Sprint(size), to)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(lab.Patience); err != nil { // more are answered where five took a while
		t.Errorf("%d bytes from %s to %s: %v\n%s", size, from.Name, to, err, p.Output())
	}
}
