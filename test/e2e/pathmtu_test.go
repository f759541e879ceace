package e2e

import (
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"urdma/test/lab"
	"urdma/test/lab/labtest"
)

// joinRouted sets up two hosts with routers between them, or skips the test.
func joinRouted(t *testing.T, w lab.Wire, middle int, silent bool) *lab.Routed {
	t.Helper()
	need(t, "rping")
	need(t, "sysctl")
	l := labtest.New(t)
	if err := l.Can(w); err != nil {
		t.Skip(err)
	}
	r, err := l.JoinRouted(w, middle, silent)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// routedPing moves messages of some tens of packets in both directions and checks the bytes.
func routedPing(r *lab.Routed, rounds int) lab.Pair {
	args := []string{"-V", "-v", "-S", "30000", "-C", strconv.Itoa(rounds)}
	return lab.Pair{ServerNode: r.A, ClientNode: r.B,
		Server: append([]string{"rping", "-s", "-a", r.A.Address}, args...),
		Client: append([]string{"rping", "-c", "-a", r.A.Address}, args...)}
}

// fragments counts the fragments that arrived at the hosts.
func fragments(t *testing.T, r *lab.Routed) (n int) {
	t.Helper()
	for _, host := range []*lab.Node{r.A, r.B} {
		n += fragments6(t, host)
		argv := host.Net.Command("cat", "/proc/net/snmp")
		out, err := exec.Command(argv[0], argv[1:]...).Output()
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for line := range strings.Lines(string(out)) {
			f := strings.Fields(line)
			if f[0] != "Ip:" {
				continue
			}
			for i := range min(len(f), len(names)) {
				if names[i] == "ReasmReqds" {
					count, err := strconv.Atoi(f[i])
					if err != nil {
						t.Fatal(err)
					}
					n += count
				}
			}
			names = f
		}
	}
	return n
}

// fragments6 counts the IPv6 fragments that arrived at a host.
func fragments6(t *testing.T, host *lab.Node) int {
	t.Helper()
	argv := host.Net.Command("cat", "/proc/net/snmp6")
	out, err := exec.Command(argv[0], argv[1:]...).Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); f[0] == "Ip6ReasmReqds" {
			n, err := strconv.Atoi(f[1])
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatal("the kernel does not count fragments of IPv6")
	return 0
}

// TestNarrowPath: on a path with a smaller MTU in the middle than at both ends, programs connect and move data in
// packets that need no fragments, with ICMP's help and without. Without it the kernel's TCP finds nothing out by
// itself (net.ipv4.tcp_mtu_probing is off).
func TestNarrowPath(t *testing.T) {
	for _, c := range []struct {
		wire   lab.Wire
		silent bool
	}{{lab.UDP, false}, {lab.UDP, true}, {lab.TCP, false}} {
		t.Run(fmt.Sprintf("%s,silent=%v", c.wire.Name, c.silent), func(t *testing.T) {
			n := 1
			for try := 0; n != 0 && try < 3; try++ { // a delayed urdmad may count as an older one
				r := joinRouted(t, c.wire, 1340, c.silent)
				pass(t, routedPing(r, 20))
				n = fragments(t, r)
			}
			if n != 0 {
				t.Errorf("%d fragments came", n)
			}
		})
	}
}

// TestPathNarrowsUnderWay: a connection continues when the MTU of its path shrinks, and a new one has packets that
// need no fragments. IPv6 is tested in the hard case: no router fragments, and none reports drops.
func TestPathNarrowsUnderWay(t *testing.T) {
	for _, c := range []struct {
		wire   lab.Wire
		silent bool
	}{{lab.UDP, false}, {lab.UDP, true}, {lab.UDP.V6(), true}, {lab.TCP, false}} {
		t.Run(fmt.Sprintf("%s,silent=%v", c.wire.Name, c.silent), func(t *testing.T) {
			r := joinRouted(t, c.wire, 1500, c.silent)
			p := routedPing(r, 300)
			server, err := p.StartServer()
			if err != nil {
				t.Fatal(err)
			}
			client, err := p.ClientNode.Exec(p.Client...)
			if err != nil {
				t.Fatal(err)
			}
			for end := time.Now().Add(lab.Patience); !strings.Contains(client.Output(), "ping data: rdma-ping-20") &&
				time.Now().Before(end); {
				time.Sleep(time.Millisecond)
			}
			if err := r.SetMiddle(1300); err != nil {
				t.Fatal(err)
			}
			if err := client.Wait(5 * lab.Patience); err != nil {
				t.Fatalf("%v\n%s", err, lab.Tail(client.Output(), 10))
			}
			if broken(client.Output()) {
				t.Fatalf("the connection ended\n%s", lab.Tail(client.Output(), 3))
			}
			if err := server.Wait(lab.Patience); err != nil {
				t.Fatalf("%v\n%s", err, lab.Tail(server.Output(), 10))
			}
			n := 1
			for try := 0; n != 0 && try < 3; try++ {
				before := fragments(t, r)
				time.Sleep(1100 * time.Millisecond) // results are checked again after a second
				pass(t, routedPing(r, 20))
				n = fragments(t, r) - before
			}
			if n != 0 && !c.wire.IPv6 {
				t.Errorf("%d fragments came for a new connection", n)
			}
		})
	}
}
