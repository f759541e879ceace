package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"urdma/test/lab"
	"urdma/test/lab/labtest"
)

// TestPrograms6 runs Debian's programs over IPv6 on ports that carry frames.
func TestPrograms6(t *testing.T) {
	for _, w := range []lab.Wire{lab.Memif.V6(), lab.AFPacket.V6()} {
		t.Run(w.Name, func(t *testing.T) {
			a, b := labtest.Join(t, w, nil)
			t.Run("rping", func(t *testing.T) { rping6(t, a, b) })
			t.Run("rping-back", func(t *testing.T) { rping6(t, b, a) })
			if w.Device == lab.Memif.Device {
				t.Run("by number", func(t *testing.T) { byNumber6(t, a, b) })
			}
			t.Run("udaddy", func(t *testing.T) { udaddy6(t, a, b) })
			t.Run("udpong", func(t *testing.T) { datagramSockets(t, a, b, pongs6) })
			for _, transport := range []string{"ib", "roce"} {
				t.Run("mckey/"+transport, func(t *testing.T) { mckey(t, a, b, transport, "ff15::239:1:2:3") })
			}
		})
	}
}

// byNumber6 runs programs that exchange queue pair numbers over TCP on the loopback interface, with LIDs and with
// GIDs. perftest uses rdma_cm only with IPv4.
func byNumber6(t *testing.T, server, client *lab.Node) {
	n := &byNumber{server: server, client: client, tcp: "127.0.0.1"}
	for _, program := range []string{"ib_write_bw", "ib_send_lat", "ib_read_lat"} {
		for transport, args := range map[string][]string{"ib": nil, "roce": {"-x", "0"}} {
			r := n.run(t, transport, program, slices.Concat([]string{"-F", "-n", "100"}, args)...)
			rows, err := lab.ParsePerftest(r.Client)
			if err != nil || len(rows) != 1 || rows[0].Iterations < 100 {
				t.Errorf("%s as %s: %v, %+v", program, transport, err, rows)
			}
		}
	}
	if r := n.run(t, "roce", "ibv_rc_pingpong", "-g", "0", "-n", "100"); !strings.Contains(r.Client, "100 iters in") {
		t.Errorf("ibv_rc_pingpong:\n%s", r.Client)
	}
	if r := n.run(t, "roce", "ib_send_lat", "-F", "-c", "UD", "-n", "100", "-x", "0"); !strings.Contains(r.Client,
		"rdma_cm QPs\t : OFF") {
		t.Errorf("datagrams:\n%s", r.Client)
	}
}

// mckey has one sender and two receivers, one of them on the sender's host. The receivers start first: the sender
// pauses before it sends, but that may be too short.
func mckey(t *testing.T, a, b *lab.Node, transport, group string) {
	t.Helper()
	need(t, "mckey")
	start := func(n *lab.Node, args ...string) *lab.Process {
		line := []string{"env", "URDMA_TRANSPORT=" + transport, "stdbuf", "-oL", "mckey", "-m", group, "-b", n.Address, "-C",
			"5"}
		p, err := n.Exec(append(line, args...)...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Kill)
		return p
	}
	receivers := []*lab.Process{start(a), start(b)}
	for _, p := range receivers {
		count(t, p, lab.Patience, 1, func(output string) int { return strings.Count(output, "mckey: joined dgid") })
	}
	for _, p := range append(receivers, start(b, "-s")) {
		if err := p.Wait(lab.Patience); err != nil || !strings.Contains(p.Output(), "data transfers complete") {
			t.Errorf("%v:\n%s", err, p.Output())
		}
	}
}

// TestDuplicateAddress: if two hosts on a link have one IPv6 address, at least one notices it and gives the address
// up: its port is down for programs.
func TestDuplicateAddress(t *testing.T) {
	a, b := labtest.Join(t, lab.AFPacket.V6(), nil)
	duplicate(t, a, b, "another host has the port's IPv6 address")
	await(t, "its port's end", func() (bool, string) {
		var ports string
		for _, n := range []*lab.Node{a, b} {
			out, err := n.Run(lab.Patience, "ibv_devinfo")
			if err != nil {
				t.Fatal(err)
			}
			ports += out
		}
		return strings.Contains(ports, "PORT_DOWN"), ports
	})
}

// TestDuplicateIPv4Address: both hosts log it and continue.
func TestDuplicateIPv4Address(t *testing.T) {
	a, b := labtest.Join(t, lab.AFPacket, nil)
	duplicate(t, a, b, "another host uses the port's IPv4 address")
	for _, n := range []*lab.Node{a, b} {
		await(t, n.Name+" to say so", func() (bool, string) {
			said := n.Daemon.Output()
			return strings.Contains(said, "another host uses the port's IPv4 address"), said
		})
		if out, err := n.Run(lab.Patience, "ibv_devinfo"); err != nil || !strings.Contains(out, "PORT_ACTIVE") {
			t.Errorf("%s: %v:\n%s", n.Name, err, out)
		}
	}
}

// duplicate starts b again with the address of a, and waits until one of them logs it.
func duplicate(t *testing.T, a, b *lab.Node, want string) {
	t.Helper()
	if err := b.StopDaemon(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(b.Directory(), "urdma.json")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	same := strings.ReplaceAll(string(text), b.Address+"/", a.Address+"/")
	if same == string(text) {
		t.Fatalf("no address %s in %s", b.Address, text)
	}
	if err := os.WriteFile(file, []byte(same), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := b.StartDaemon(); err != nil {
		t.Fatal(err)
	}
	await(t, "the duplicate", func() (bool, string) {
		said := a.Daemon.Output() + b.Daemon.Output()
		return strings.Contains(said, want), said
	})
}
