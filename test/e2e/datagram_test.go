package e2e

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"urdma/test/lab"
	"urdma/test/lab/labtest"
)

// TestDatagrams runs programs that use queue pairs of type UD, by LID as ib and by GID as roce and iwarp. The
// programs wait for all messages, so all must arrive. Within one urdmad and over a memif a sender waits for room. On
// other wires the kernel's sockets drop messages that a urdmad without a processor does not read in time; there no
// program sends more at once than the smallest socket holds.
func TestDatagrams(t *testing.T) {
	for _, c := range []struct {
		wire  lab.Wire
		share share
	}{
		{lab.Loopback, even}, {lab.Loopback.WithWorkers(2), odd}, {lab.Memif, odd}, {lab.AFPacketKernel, even},
		{lab.UDP, odd}, {lab.UDP.WithWorkers(2), even}, {lab.TCP, every},
	} {
		w := c.wire
		t.Run(w.Name, func(t *testing.T) {
			a, b := labtest.Join(t, w, nil)
			tcp := "127.0.0.1"
			if w.NeedsNamespaces() {
				tcp = a.Address
			}
			n := &byNumber{server: a, client: b, tcp: tcp, share: c.share}
			t.Run("ibv_ud_pingpong", n.datagramPingPong)
			t.Run("perftest", func(t *testing.T) { n.datagramPerftest(t, w.NeedsNamespaces() || w.SeveralWorkers()) })
			t.Run("rdma_cm", n.datagramCM)
		})
	}
}

// TestLongDatagrams: within a machine ports have the MTU of InfiniBand by default, so that datagrams of 4,096 bytes pass.
func TestLongDatagrams(t *testing.T) {
	need(t, "ibv_devinfo")
	for _, w := range []lab.Wire{lab.Loopback, lab.Memif} {
		w.MTU = lab.DefaultMTU
		t.Run(w.Name, func(t *testing.T) {
			a, b := labtest.Join(t, w, nil)
			out, err := a.Urdma("exec", "--", "ibv_devinfo")
			for _, name := range []string{"max_mtu", "active_mtu"} {
				if !regexp.MustCompile(name + `:\s+4096 `).MatchString(out) {
					t.Errorf("%s is not 4096: %v\n%s", name, err, out)
				}
			}
			n := &byNumber{server: a, client: b, tcp: "127.0.0.1"}
			if r := n.run(t, "ib", "ibv_ud_pingpong", "-s", "4096"); !strings.Contains(r.Client, " iters in ") {
				t.Errorf("%s\n%s", r.Server, r.Client)
			}
		})
	}
}

func (n *byNumber) datagramPingPong(t *testing.T) {
	for i, c := range []struct {
		transport string
		args      []string
	}{
		{"ib", nil},
		{"ib", []string{"-e", "-s", "1"}},
		{"ib", []string{"-g", "0"}},
		{"roce", []string{"-g", "0", "-c", "-s", "1024"}},
		{"iwarp", []string{"-g", "0", "-e"}},
	} {
		if !n.share.has(i) {
			continue
		}
		t.Run(c.transport+strings.Join(c.args, ""), func(t *testing.T) {
			r := n.run(t, c.transport, "ibv_ud_pingpong", c.args...)
			for side, output := range map[string]string{"server": r.Server, "client": r.Client} {
				if !strings.Contains(output, " iters in ") || strings.Contains(output, "invalid data") {
					t.Errorf("%s:\n%s", side, output)
				}
			}
		})
	}
}

// datagramPerftest runs perftest's programs for Sends. Programs that measure bandwidth send as fast as they can. On a
// wire that drops, such as the rings between workers, they send so few messages that even the default of
// net.core.rmem_max, 212,992 bytes, has room for all of them.
func (n *byNumber) datagramPerftest(t *testing.T, drops bool) {
	for i, c := range []struct {
		transport string
		program   string
		args      []string
		pairs     int
	}{
		{"ib", "ib_send_lat", nil, 1},
		{"roce", "ib_send_lat", []string{"-x", "0", "-e", "-s", "1024"}, 1},
		{"roce", "ib_send_bw", []string{"-x", "0", "-s", "1024"}, 1},
		{"ib", "ib_send_bw", []string{"-q", "16"}, 16},
		{"ib", "ib_send_bw", []string{"-e"}, 1},
	} {
		if !n.share.has(i) {
			continue
		}
		t.Run(c.transport+c.program+strings.Join(c.args, ""), func(t *testing.T) {
			each := 200
			if drops && c.program == "ib_send_bw" {
				each = max(5, 64/c.pairs)
			}
			r := n.run(t, c.transport, c.program, slices.Concat([]string{"-F", "-c", "UD", "-n", strconv.Itoa(each)}, c.args)...)
			rows, err := lab.ParsePerftest(r.Client)
			if err != nil || len(rows) != 1 || rows[0].Iterations != each*c.pairs {
				t.Errorf("%v, %+v\n%s", err, rows, lab.Tail(r.Client, 30))
			}
		})
	}
}

// datagramCM runs programs that find their peer's queue pair through rdma_cm's port space for datagrams.
func (n *byNumber) datagramCM(t *testing.T) {
	for _, transport := range []string{"ib", "roce", "iwarp"} {
		t.Run("udaddy/"+transport, func(t *testing.T) {
			need(t, "udaddy")
			env := []string{"env", "URDMA_TRANSPORT=" + transport, "udaddy", "-c", "5", "-C", "20", "-S", "500"}
			r := pass(t, lab.Pair{ServerNode: n.server, ClientNode: n.client,
				Server: slices.Concat(env, []string{"-b", n.server.Address}),
				Client: slices.Concat(env, []string{"-s", n.server.Address})})
			for side, output := range map[string]string{"server": r.Server, "client": r.Client} {
				if !strings.Contains(output, "data transfers complete") || !strings.Contains(output, "return status 0") {
					t.Errorf("%s:\n%s", side, output)
				}
			}
		})
	}
	t.Run("ib_send_lat -R", func(t *testing.T) {
		need(t, "ib_send_lat")
		both := []string{"env", "URDMA_TRANSPORT=roce", "ib_send_lat", "-F", "-c", "UD", "-n", "200", "-R"}
		r := pass(t, lab.Pair{ServerNode: n.server, ClientNode: n.client, Server: both,
			Client: append(slices.Clone(both), n.server.Address)})
		rows, err := lab.ParsePerftest(r.Client)
		if err != nil || len(rows) != 1 || !strings.Contains(r.Client, "rdma_cm QPs\t : ON") {
			t.Errorf("%v, %+v\n%s", err, rows, lab.Tail(r.Client, 30))
		}
	})
}

// TestMulticast: one sender and two receivers, one of them on the sender's host.
func TestMulticast(t *testing.T) {
	need(t, "mckey")
	for _, w := range []lab.Wire{lab.Memif, lab.AFPacket} {
		for _, transport := range []string{"roce", "ib"} {
			t.Run(w.Name+"/"+transport, func(t *testing.T) {
				a, b := labtest.Join(t, w, nil)
				mckey(t, a, b, transport, "239.1.2.3")
			})
		}
	}
}
