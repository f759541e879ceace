package e2e

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"urdma/test/lab"
	"urdma/test/lab/labtest"
)

// TestSockets runs the programs of rdmacm-utils that use sockets over RDMA, and the one that measures connecting,
// between two hosts; in the long tests between network namespaces. (verbs/lib/cm/test runs them within one host.)
func TestSockets(t *testing.T) {
	wires := []lab.Wire{lab.Memif}
	if long {
		wires = append(wires, lab.UDP, lab.TCP, lab.RoCE, lab.AFPacketKernel)
	}
	for _, w := range wires {
		t.Run(w.Name, func(t *testing.T) {
			a, b := labtest.Join(t, w, nil)
			t.Run("udpong", func(t *testing.T) { datagramSockets(t, a, b, pongs) })
			t.Run("rstream", func(t *testing.T) { streams(t, a, b) })
			t.Run("rcopy", func(t *testing.T) { copyFile(t, a, b) })
			t.Run("cmtime", func(t *testing.T) { timeConnections(t, a, b) })
		})
	}
}

// streams runs rstream and riostream with each of their -T options. Their default, which is every size many times, is
// only for the long tests.
func streams(t *testing.T, server, client *lab.Node) {
	lines := []string{
		"rstream -S 1000 -I 50 -C 20 -T a", "rstream -S 65536 -I 5 -C 20 -T b", "rstream -S 65536 -I 5 -C 20 -T n",
		"rstream -S 100 -I 20 -C 20 -T r", "rstream -S 4096 -I 20 -C 20 -T v -B 20000",
		"rstream -S 100 -I 50 -C 10 -i 16 -k 10",
		"rstream -S all -I 5 -C 5 -T v", "riostream -S 65536 -I 3 -C 5 -T v", "riostream -S all -I 3 -C 5 -T b",
	}
	limit := lab.Patience // each takes a second or two
	if long {
		lines, limit = append(lines, "rstream", "riostream"), 10*lab.Patience
	}
	for i, line := range lines {
		t.Run(line, func(t *testing.T) {
			argv := append(strings.Fields(line), "-p", strconv.Itoa(7300+i))
			need(t, argv[0])
			pair := lab.Pair{ServerNode: server, ClientNode: client,
				Server: slices.Concat(argv, []string{"-b", server.Address}),
				Client: slices.Concat(argv, []string{"-s", server.Address}), Limit: limit}
			pair.ShownAs([]string{"iwarp", "ib", "roce"}[i%3])
			if r := pass(t, pair); !strings.Contains(r.Client, "Gb/sec") {
				t.Errorf("no table:\n%s", r.Client)
			}
		})
	}
}

var (
	pongs = [][]string{{"-S", "100", "-T", "e"}, {"-S", "1000", "-T", "e", "-T", "a"},
		{"-S", "1000", "-T", "e", "-T", "b"}}
	pongs6 = [][]string{{"-S", "100", "-T", "e"}, {"-S", "900", "-T", "e", "-T", "b"},
		{"-S", "1000", "-T", "e", "-T", "b"}}
)

// datagramSockets checks udpong's echoes. A message must fit a datagram of 1,024 bytes, as at an MTU of 1,500.
func datagramSockets(t *testing.T, server, client *lab.Node, pongs [][]string) {
	need(t, "udpong")
	for i, args := range pongs {
		t.Run(strings.Join(args, ""), func(t *testing.T) {
			argv := slices.Concat([]string{"env", "URDMA_TRANSPORT=" + []string{"iwarp", "ib", "roce"}[i], "udpong", "-C", "50",
				"-p", strconv.Itoa(7330 + i)}, args)
			p, err := lab.Pair{ServerNode: server, Server: append(argv, "-b", server.Address)}.StartServer()
			if err != nil {
				t.Fatal(err)
			}
			defer p.Kill()
			out, err := echoed(client, append(argv, "-s", server.Address)...)
			if err != nil || !strings.Contains(out, "custom") || strings.Count(out, "100") == 0 {
				t.Errorf("%v\n%s\nserver:\n%s", err, out, p.Output())
			}
		})
	}
}

// echoed runs a client of udpong, and again if it loops for ever: it reads echoes into the message that it sends
// (client_send_recv). If an echo comes later than the millisecond for which it waits, it sends the last message again
// instead of the new one, for ever if the new one was lost.
func echoed(n *lab.Node, argv ...string) (string, error) {
	for tries := 1; ; tries++ {
		p, err := n.Exec(argv...)
		if err != nil {
			return "", err
		}
		for end := time.Now().Add(lab.Patience / 3); p.Running() &&
			time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		}
		if !p.Running() || tries == 4 || !sends(n) {
			err := p.Wait(time.Second)
			return p.Output(), err
		}
		p.Kill()
	}
}

// sends reports whether a program of the node sends messages.
func sends(n *lab.Node) bool {
	count := func() string {
		out, _ := n.Urdma("show", "qp", "--json")
		return gjson.Get(out, "#.messages_sent").Raw
	}
	before := count()
	time.Sleep(time.Second)
	return count() != before
}

// copyFile copies a file; of 1 GiB in the long tests.
func copyFile(t *testing.T, server, client *lab.Node) {
	need(t, "rcopy")
	content := make([]byte, 3_000_001)
	if long {
		content = make([]byte, 1<<30)
	}
	_, _ = rand.Read(content)
	from, to := filepath.Join(client.Directory(), "from"), filepath.Join(server.Directory(), "to")
	if err := os.WriteFile(from, content, 0o644); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(from)
	defer os.Remove(to)
	p, err := lab.Pair{ServerNode: server, Server: []string{"rcopy", "-p", "7350"}}.StartServer()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Kill()
	if _, err := client.Run(10*lab.Patience, "rcopy", from, fmt.Sprintf("%s:%s", server.Address, to), "-p",
		"7350"); err != nil {
		t.Fatalf("%v\nserver:\n%s", err, p.Output())
	}
	if copied, err := os.ReadFile(to); err != nil || !bytes.Equal(copied, content) {
		t.Errorf("the copy has %d bytes and differs from %d: %v", len(copied), len(content), err)
	}
}

// timeConnections makes 1,000 connections at once. The client has two completion channels for each, so it needs many
// descriptors.
func timeConnections(t *testing.T, server, client *lab.Node) {
	need(t, "cmtime")
	line := func(args string) []string { return []string{"sh", "-c", "ulimit -n 5000 && exec cmtime " + args} }
	p, err := lab.Pair{ServerNode: server, Server: line("-b " + server.Address)}.StartServer()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Kill()
	out, err := client.Run(2*lab.Patience, line("-c 1000 -s "+server.Address)...)
	if err != nil || strings.Contains(out, "fail") || !strings.Contains(out, "disconnect") {
		t.Errorf("%v\n%s\nserver:\n%s", err, out, p.Output())
	}
}

// holdNothing waits until no urdmad has an object of a program.
func holdNothing(t *testing.T, nodes ...*lab.Node) {
	t.Helper()
	for _, n := range nodes {
		for _, kind := range []string{"client", "qp", "mr"} {
			hasNone(t, n, kind)
		}
	}
}

// hasNone waits until a urdmad has no object of a kind: a program's objects are removed a moment after its end.
func hasNone(t *testing.T, n *lab.Node, kind string) {
	t.Helper()
	await(t, "urdmad of "+n.Name+" to have no "+kind, func() (bool, string) {
		out, err := n.Urdma("show", kind, "--json")
		return err == nil && strings.TrimSpace(out) == "[]", out
	})
}

// count waits until a process has printed a text n times.
func count(t *testing.T, p *lab.Process, limit time.Duration, n int, of func(output string) int) {
	t.Helper()
	for end := time.Now().Add(limit); of(p.Output()) < n; time.Sleep(20 * time.Millisecond) {
		if !p.Running() || time.Now().After(end) {
			t.Fatalf("runs: %v\n%s", p.Running(), p.Output())
		}
	}
}
