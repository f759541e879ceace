package e2e

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"urdma/test/lab"
	"urdma/test/lab/labtest"
	"urdma/test/programtest"
)

// TestByNumber runs programs that exchange queue pair numbers over TCP and connect with ibv_modify_qp, under each
// transport: by LID as ib, by GID as the others.
func TestByNumber(t *testing.T) {
	for _, c := range []struct {
		wire  lab.Wire
		share share
	}{
		{lab.Loopback, even}, {lab.Loopback.WithWorkers(2), odd}, {lab.Memif, odd}, {lab.Memif.WithWorkers(2), even},
		{lab.TCP, even}, {lab.AFPacketKernel, fourth(1)},
	} {
		t.Run(c.wire.Name, func(t *testing.T) {
			a, b := labtest.Join(t, c.wire, nil)
			tcp := "127.0.0.1"
			if c.wire.NeedsNamespaces() {
				tcp = a.Address // the kernels have the ports' addresses
			}
			n := &byNumber{server: a, client: b, tcp: tcp, share: c.share}
			t.Run("ibv_rc_pingpong", n.pingPong)
			t.Run("shared receive queues", n.sharedPingPong)
			t.Run("perftest", n.perftest)
		})
	}
}

// TestPortsAddressForTCP: perftest's own TCP connection to the address of a port, which the kernel does not have,
// reaches the server on this host.
func TestPortsAddressForTCP(t *testing.T) {
	a, b := labtest.Join(t, lab.Loopback, nil)
	n := &byNumber{server: a, client: b, tcp: a.Address}
	r := n.run(t, "roce", "ib_send_bw", "-F", "-x", "0", "-n", "100")
	if rows, err := lab.ParsePerftest(r.Client); err != nil || len(rows) != 1 {
		t.Errorf("%v\n%s", err, lab.Tail(r.Client, 30))
	}
}

// byNumber is two hosts, the address at which TCP reaches the server, and the share of the runs.
type byNumber struct {
	server, client *lab.Node
	tcp            string
	share          share
}

// run runs a program on both hosts, with the ports shown as transport.
func (n *byNumber) run(t *testing.T, transport, program string, args ...string) lab.Result {
	t.Helper()
	need(t, program)
	if slices.Contains(args, "XRC") {
		forgetXRCFiles(t)
	}
	port := programtest.FreePort(t)
	both := slices.Concat([]string{"env", "URDMA_TRANSPORT=" + transport, program, "-p", strconv.Itoa(port)}, args)
	return pass(t, lab.Pair{ServerNode: n.server, ClientNode: n.client, TCPPort: port, Server: both,
		Client: append(slices.Clone(both), n.tcp)})
}

func (n *byNumber) pingPong(t *testing.T) {
	for i, c := range []struct {
		transport string
		args      []string
	}{
		{"ib", nil},
		{"ib", []string{"-g", "0"}},
		{"roce", []string{"-g", "0", "-c"}},
		{"roce", []string{"-g", "0", "-e"}},
		{"roce", []string{"-g", "0", "-e", "-c", "-s", "1048576", "-n", "100"}},
		{"roce", []string{"-g", "0", "-s", "1", "-m", "256"}},
		{"iwarp", []string{"-g", "0", "-c"}},
	} {
		if !n.share.has(i) {
			continue
		}
		t.Run(c.transport+strings.Join(c.args, ""), func(t *testing.T) {
			r := n.run(t, c.transport, "ibv_rc_pingpong", c.args...)
			for side, output := range map[string]string{"server": r.Server, "client": r.Client} {
				if !strings.Contains(output, " iters in ") || strings.Contains(output, "invalid data") {
					t.Errorf("%s:\n%s", side, output)
				}
			}
		})
	}
}

// sharedPingPong runs the programs with shared receive queues, including XRC's.
func (n *byNumber) sharedPingPong(t *testing.T) {
	for i, c := range []struct {
		program, transport, says string
		args                     []string
	}{
		{"ibv_srq_pingpong", "ib", " iters in ", []string{"-q", "1"}},
		{"ibv_srq_pingpong", "roce", " iters in ", []string{"-g", "0", "-q", "1", "-e", "-c"}},
		{"ibv_srq_pingpong", "iwarp", " iters in ", []string{"-g", "0", "-q", "1", "-s", "100000", "-n", "100"}},
		// one side exits during the other's sends
		{"ibv_srq_pingpong", "roce", " iters in ", []string{"-g", "0", "-q", "4"}},
		{"ibv_xsrq_pingpong", "ib", "success", nil},
		{"ibv_xsrq_pingpong", "roce", "success", []string{"-g", "0", "-e"}},
		{"ibv_xsrq_pingpong", "roce", "success", []string{"-g", "0", "-s", "100000", "-n", "300"}},
	} {
		if !n.share.has(i) {
			continue
		}
		t.Run(c.program+"/"+c.transport+strings.Join(c.args, ""), func(t *testing.T) {
			r := n.run(t, c.transport, c.program, c.args...)
			for side, output := range map[string]string{"server": r.Server, "client": r.Client} {
				if !strings.Contains(output, c.says) || strings.Contains(output, "invalid data") {
					t.Errorf("%s:\n%s", side, output)
				}
			}
		})
	}
}

// forgetXRCFiles removes the files by which perftest's two sides name their XRC domains. perftest leaves them, and in
// a directory that everyone may write another user, even root, can't open them (fs.protected_regular).
func forgetXRCFiles(t *testing.T) {
	t.Helper()
	for _, name := range []string{"/tmp/xrc_domain", "/tmp/xrc_domain_client", "/tmp/xrc_domain_server"} {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
	}
}

func (n *byNumber) perftest(t *testing.T) {
	for i, program := range lab.Perftest {
		for j, c := range []struct {
			transport string
			args      []string
		}{
			{"ib", nil}, {"roce", nil}, {"roce", []string{"-x", "0", "-s", "1048576"}}, {"iwarp", []string{"-x", "0"}},
			{"roce", []string{"-q", "4"}}, {"roce", []string{"--use-srq", "-q", "4", "-b"}},
			{"ib", []string{"-c", "XRC"}}, {"roce", []string{"-c", "XRC", "-q", "4"}},
		} {
			switch {
			case !n.share.has(i + j):
				continue
			case slices.Contains(c.args, "--use-srq") && program != "ib_send_bw":
				continue // only these consume receives
			case slices.Contains(c.args, "-q") && strings.HasSuffix(program, "_lat"):
				continue // the latency programs have one queue pair
			case c.transport == "iwarp" && program == "ib_send_bw":
				continue // its server posts sends in RTR, because it expects rdma_cm
			}
			t.Run(program+"/"+c.transport+strings.Join(c.args, ""), func(t *testing.T) {
				r := n.run(t, c.transport, program, slices.Concat([]string{"-F", "-n", "100"}, c.args)...)
				rows, err := lab.ParsePerftest(r.Client)
				if err != nil || len(rows) != 1 || rows[0].Iterations < 100 {
					t.Errorf("%v, %+v", err, rows)
				}
				if !strings.Contains(r.Client, "rdma_cm QPs\t : OFF") {
					t.Errorf("not by number:\n%s", lab.Tail(r.Client, 30))
				}
			})
		}
	}
}
