package e2e

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"urdma/test/lab"
	"urdma/test/lab/labtest"
)

// shareWithKernel makes two nodes whose kernels have network interfaces rdma-a and rdma-b on their ports, each in its
// own network namespace; address is the second node's, if not empty. The second urdmad is not started yet.
func shareWithKernel(t *testing.T, w lab.Wire, address string) (a, b *lab.Node) {
	t.Helper()
	l := labtest.New(t)
	if err := l.Can(lab.AFPacket); err != nil {
		t.Skip(err)
	}
	tun, err := os.OpenFile("/dev/net/tun", os.O_RDWR, 0)
	if err != nil {
		t.Skip(err)
	}
	tun.Close()
	a, b = labtest.JoinIn(t, l, w, nil)
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
		if n == b && address != "" {
			c.Ports[0]["ipv4_address"] = address
		}
		if err := n.Change("ports", c.Ports); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.StartDaemon(); err != nil {
		t.Fatal(err)
	}
	return a, b
}

// TestKernelInterface: RDMA programs use one address of a port, on which the kernel has an interface, for the
// kernel's TCP, too, and the kernels answer pings.
func TestKernelInterface(t *testing.T) {
	whole(t)
	need(t, "ping")
	need(t, "python3")
	withOneAndTwo(t, kernelInterface)
	t.Run("rocev2", func(t *testing.T) {
		kernelInterface(t, lab.Wire{Name: "rocev2/memif", Device: "memif", Protocol: "rocev2", Workers: 2})
	})
}

// withOneAndTwo runs a test with one worker, and with two.
func withOneAndTwo(t *testing.T, test func(t *testing.T, w lab.Wire)) {
	for workers := range 2 {
		t.Run(fmt.Sprint(workers+1), func(t *testing.T) { test(t, lab.Memif.WithWorkers(workers+1)) })
	}
}

func kernelInterface(t *testing.T, w lab.Wire) {
	a, b := shareWithKernel(t, w, "")
	if err := b.StartDaemon(); err != nil {
		t.Fatal(err)
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
	kernelDatagrams(t, a, b)
	if w.Protocol == "" {
		(&byNumber{server: a, client: b, tcp: a.Address}).pingPong(t)
	}
	if err := b.StopDaemon(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(lab.Patience); a.Net.Run("sh", "-c",
		"ip link show rdma-a | grep -q NO-CARRIER") != nil; time.Sleep(10 * time.Millisecond) {
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

// kernelDatagrams: a UDP datagram reaches a's kernel, and the answer b's.
func kernelDatagrams(t *testing.T, a, b *lab.Node) {
	t.Helper()
	const socket = "import socket, sys\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\ns.settimeout(30)\n"
	s, err := a.Start("python3", "-c", socket+
		"s.bind(('', 5353))\nprint('bound', flush=True)\nb, f = s.recvfrom(9)\ns.sendto(b, f)")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Kill()
	for end := time.Now().Add(lab.Patience); !strings.Contains(s.Output(), "bound"); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(s.Output())
		}
	}
	if err := b.Net.Run("python3", "-c", socket+"s.sendto(b'x', (sys.argv[1], 5353))\ns.recv(9)", a.Address); err != nil {
		t.Error(err)
	}
}

// TestPortFollowsKernelInterface: changes of the kernel's network interface on a port change the port, too: address,
// MTU, up and down. A connection ends with its address, and the next one uses the new address.
func TestPortFollowsKernelInterface(t *testing.T) {
	whole(t)
	need(t, "ping")
	need(t, "rping")
	withOneAndTwo(t, portFollows)
}

func portFollows(t *testing.T, w lab.Wire) {
	a, b := shareWithKernel(t, w, "0.0.0.0/24")
	if err := b.StartDaemon(); err != nil {
		t.Fatal(err)
	}
	ip := func(args ...string) {
		t.Helper()
		if err := b.Net.Run(append([]string{"ip"}, args...)...); err != nil {
			t.Fatal(err)
		}
	}
	is := func(address string, mtu int, up bool) {
		t.Helper()
		var last string
		for end := time.Now().Add(lab.Patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			if last, _ = b.Urdma("show", "--json", "port"); gjson.Get(last, "0.address").Str == address &&
				int(gjson.Get(last, "0.mtu").Int()) == mtu && gjson.Get(last, "0.link_up").Bool() == up {
				return
			}
		}
		t.Fatalf("the port does not become %s, MTU %d, up: %v:\n%s", address, mtu, up, last)
	}
	rping := func(address string) {
		t.Helper()
		pass(t, lab.Pair{ServerNode: b, ClientNode: a, Server: []string{"rping", "-s", "-p", "7471", "-C", "3"},
			Client: []string{"rping", "-c", "-a", address, "-p", "7471", "-C", "3"}})
		if err := a.Net.Run("ping", "-q", "-c", "1", "-w", "60", address); err != nil {
			t.Error(err)
		}
	}
	other := func(host byte) netip.Prefix {
		ip := netip.MustParseAddr(a.Address).As4()
		ip[3] = host
		return netip.PrefixFrom(netip.AddrFrom4(ip), 24)
	}
	first, second := other(77), other(78)
	is("0.0.0.0/24", 1500, false)
	ip("address", "add", first.String(), "dev", "rdma-b")
	is(first.String(), 1500, true)
	rping(first.Addr().String())

	server, err := lab.Pair{ServerNode: b, Server: []string{"rping", "-s", "-p", "7472"}}.StartServer()
	if err != nil {
		t.Fatal(err)
	}
	client, err := a.Exec("rping", "-c", "-a", first.Addr().String(), "-p", "7472", "-C", "1000000000")
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(lab.Patience); ; time.Sleep(10 * time.Millisecond) {
		if out, _ := b.Urdma("show", "--json", "qp"); strings.Contains(out, `"RTS"`) {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("rping does not connect:\n%s%s", server.Output(), client.Output())
		}
	}
	// in the same network: a secondary address, which has no effect
	ip("address", "add", second.String(), "dev", "rdma-b")
	ip("address", "del", first.String(), "dev", "rdma-b")
	for _, p := range []*lab.Process{server, client} {
		_ = p.Wait(lab.Patience) // with any status
		if p.Running() {
			t.Errorf("%s goes on without its address", p.Output())
		}
	}
	is("0.0.0.0/24", 1500, false) // with an address the kernel deletes its secondary ones
	ip("address", "add", second.String(), "dev", "rdma-b")
	is(second.String(), 1500, true)
	rping(second.Addr().String())

	ip("link", "set", "rdma-b", "mtu", "1400")
	is(second.String(), 1400, true)
	rping(second.Addr().String())
	ip("link", "set", "rdma-b", "mtu", "20000")
	is(second.String(), 1500, true)
	if err := b.Net.Run("sh", "-c", "ip link show rdma-b | grep -q 'mtu 1500 '"); err != nil {
		t.Error("the interface keeps an MTU that the port has not")
	}
	ip("link", "set", "rdma-b", "down")
	is(second.String(), 1500, false)
	ip("link", "set", "rdma-b", "up")
	is(second.String(), 1500, true)
	rping(second.Addr().String())
}
