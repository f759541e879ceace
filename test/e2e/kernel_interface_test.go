package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"urdma/test/lab"
	"urdma/test/lab/labtest"
)

// TestKernelInterface: on one address of a port that the kernel has no interface for,
// programs of RDMA find each other by the kernel's TCP, and the kernels answer pings.
func TestKernelInterface(t *testing.T) {
	need(t, "ping")
	l := labtest.New(t)
	if err := l.Can(lab.AFPacket); err != nil {
		t.Skip(err)
	}
	tun, err := os.OpenFile("/dev/net/tun", os.O_RDWR, 0)
	if err != nil {
		t.Skip(err)
	}
	tun.Close()
	a, b := labtest.JoinIn(t, l, lab.Memif, nil)
	for _, n := range []*lab.Node{a, b} {
		if err := n.StopDaemon(); err != nil {
			t.Fatal(err)
		}
		if n.Net, err = l.NewNamespace(); err != nil {
			t.Fatal(err)
		}
		n.UID = 0
		text, err := os.ReadFile(filepath.Join(n.Directory(), "urdma.json"))
		if err != nil {
			t.Fatal(err)
		}
		var c struct{ Ports []lab.Config }
		if err := json.Unmarshal(text, &c); err != nil {
			t.Fatal(err)
		}
		c.Ports[0]["kernel_interface"] = "rdma-" + n.Name
		if err := n.Change("ports", c.Ports); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range []*lab.Node{a, b} {
		if err := n.StartDaemon(); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range []*lab.Node{a, b} {
		if err := n.WaitLink(lab.Patience); err != nil {
			t.Fatal(err)
		}
	}
	ping := func(size string) {
		t.Helper()
		if err := a.Net.Run("ping", "-q", "-c", "5", "-i", "0.02", "-w", "60", "-s", size, b.Address); err != nil {
			t.Error(err)
		}
	}
	ping("56")
	ping("20000") // in fragments
	(&byNumber{server: a, client: b, tcp: a.Address}).pingPong(t)
	if err := b.StopDaemon(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(lab.Patience); a.Net.Run("sh", "-c", "ip link show rdma-a | grep -q NO-CARRIER") != nil; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the interface keeps its carrier without the port's link")
		}
	}
	if err := b.Net.Run("ip", "link", "show", "rdma-b"); err == nil {
		t.Error("the interface stays behind urdmad")
	}
	if err := b.StartDaemon(); err != nil {
		t.Fatal(err)
	}
	ping("1400")
}
