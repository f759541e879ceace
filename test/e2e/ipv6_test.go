package e2e

import (
	"net"
	"os"
	"slices"
	"strings"
	"testing"

	"urdma/inspect"
	"urdma/test/lab"
	"urdma/test/lab/labtest"
)

// TestIPv6 runs Debian's programs between two hosts whose ports have IPv6 addresses: of a network, or link-local
// ones, which programs name with their interface.
func TestIPv6(t *testing.T) {
	for _, c := range []struct {
		wire  lab.Wire
		share share
	}{
		{lab.UDP.V6(), even}, {lab.UDP.OfTheLink(), odd}, {lab.TCP.V6(), odd}, {lab.TCP.OfTheLink(), even},
	} {
		t.Run(c.wire.Name, func(t *testing.T) {
			if _, err := os.Stat("/proc/net/if_inet6"); err != nil {
				t.Skip("this kernel has no IPv6")
			}
			a, b := labtest.Join(t, c.wire, nil)
			n := &byNumber{server: a, client: b, tcp: lab.KernelIPv4(0), share: c.share}
			t.Run("rping", func(t *testing.T) { rping6(t, a, b) })
			t.Run("ucmatose", func(t *testing.T) { ucmatose(t, a, b) })
			t.Run("rdma_server", func(t *testing.T) { rdmaServer6(t, a, b) })
			t.Run("rstream", func(t *testing.T) { rstream6(t, a, b) })
			t.Run("udpong", func(t *testing.T) { datagramSockets(t, a, b, pongs6) })
			t.Run("datagrams", n.datagramPingPong)
			t.Run("pingpong", n.pingPong)
			t.Run("udaddy", func(t *testing.T) { udaddy6(t, a, b) })
			t.Run("perftest", func(t *testing.T) { n.perftest6(t) })
			t.Run("urdma ping", func(t *testing.T) { ping6(t, a, b) })
			t.Run("Go", func(t *testing.T) { goPing6(t, a, b) })
		})
	}
}

func rping6(t *testing.T, server, client *lab.Node) {
	need(t, "rping")
	args := []string{"-a", server.Address, "-v", "-V", "-C", "100"}
	r := pass(t, lab.Pair{ServerNode: server, ClientNode: client, Server: append([]string{"rping", "-s"}, args...),
		Client: append([]string{"rping", "-c"}, args...)})
	for side, output := range map[string]string{"server": r.Server, "client": r.Client} {
		if got := strings.Count(output, "ping data: rdma-ping-"); got != 100 {
			t.Errorf("%s printed %d pings, want 100:\n%s", side, got, lab.Tail(output, 10))
		}
	}
}

func rdmaServer6(t *testing.T, server, client *lab.Node) {
	need(t, "rdma_server")
	r := pass(t, lab.Pair{ServerNode: server, ClientNode: client,
		Server: []string{"rdma_server", "-s", "::"}, Client: []string{"rdma_client", "-s", server.Address}})
	if !strings.Contains(r.Server, "end 0") || !strings.Contains(r.Client, "end 0") {
		t.Errorf("no \"end 0\":\n%s%s", r.Server, r.Client)
	}
}

// rstream6: over sockets of AF_INET6.
func rstream6(t *testing.T, server, client *lab.Node) {
	need(t, "rstream")
	args := []string{"rstream", "-S", "65536", "-I", "20", "-C", "10", "-T", "v", "-p", "7300"}
	r := pass(t, lab.Pair{ServerNode: server, ClientNode: client,
		Server: append(slices.Clone(args), "-f", "ipv6", "-b", server.Address),
		Client: append(slices.Clone(args), "-f", "ipv6", "-s", server.Address)})
	if !strings.Contains(r.Client, "Gb/sec") {
		t.Errorf("no table:\n%s", r.Client)
	}
}

func udaddy6(t *testing.T, server, client *lab.Node) {
	need(t, "udaddy")
	for _, transport := range []string{"ib", "roce", "iwarp"} {
		env := []string{"env", "URDMA_TRANSPORT=" + transport, "udaddy", "-c", "5", "-C", "20", "-S", "500"}
		r := pass(t, lab.Pair{ServerNode: server, ClientNode: client,
			Server: slices.Concat(env, []string{"-b", server.Address}),
			Client: slices.Concat(env, []string{"-s", server.Address})})
		for side, output := range map[string]string{"server": r.Server, "client": r.Client} {
			if !strings.Contains(output, "data transfers complete") || !strings.Contains(output, "return status 0") {
				t.Errorf("%s, %s:\n%s", transport, side, output)
			}
		}
	}
}

// perftest6 connects by number; the GID is the address.
func (n *byNumber) perftest6(t *testing.T) {
	for i, c := range []struct {
		program string
		args    []string
	}{
		{"ib_read_lat", []string{"-x", "0", "-s", "8", "-n", "200"}},
		{"ib_send_bw", []string{"-x", "0", "-s", "65536", "-n", "200"}},
		{"ib_write_lat", []string{"-x", "0", "-s", "64", "-n", "200"}},
		{"ib_send_lat", []string{"-x", "0", "-c", "UD", "-s", "64", "-n", "100"}},
	} {
		if !n.share.has(i) {
			continue
		}
		t.Run(c.program, func(t *testing.T) {
			r := n.run(t, "roce", c.program, append([]string{"-F", "--ipv6"}, c.args...)...)
			if rows, err := lab.ParsePerftest(r.Client); err != nil || len(rows) != 1 {
				t.Errorf("%v, %+v\n%s", err, rows, lab.Tail(r.Client, 30))
			}
		})
	}
}

func ping6(t *testing.T, a, b *lab.Node) {
	whole(t)
	r, err := urdmaPing(t, a, b, "-c", "3", "-i", "10ms", "-s", "64KiB")
	if err != nil || r.Answered != 3 || r.Path != inspect.PathWire {
		t.Errorf("%+v, %v", r, err)
	}
	plain, _, _ := strings.Cut(a.Address, "%")
	if net.ParseIP(plain) == nil {
		t.Fatalf("%q is no address", plain)
	}
	for _, what := range []string{"port", "device"} {
		if out, err := a.Urdma("show", what); err == nil && !strings.Contains(out, plain) {
			t.Errorf("urdma show %s does not have %s:\n%s", what, plain, out)
		}
	}
}
