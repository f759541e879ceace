package e2e

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"urdma/test/lab"
	"urdma/test/lab/labtest"
	"urdma/test/programtest"
)

// TestOptions runs programs that connect by queue pair number, with options for which they use other functions of the
// library than by default. With options that none of our ports supports they must end with a message.
func TestOptions(t *testing.T) {
	a, b := labtest.Join(t, lab.Memif, nil)
	n := &byNumber{server: a, client: b, tcp: "127.0.0.1"}
	t.Run("pingpong", func(t *testing.T) {
		n.pingPongs(t, "ibv_rc_pingpong -g 0 -t", "ibv_rc_pingpong -g 0 -j", "ibv_rc_pingpong -g 0 -N",
			"ibv_rc_pingpong -g 0 -N -t -s 262144 -c",
			"ibv_rc_pingpong -g 0 -r 1", "ibv_uc_pingpong -g 0 -c", "ibv_uc_pingpong -g 0 -r 1 -e",
			"ibv_ud_pingpong -g 0 -r 2 -e -c",
			"ibv_srq_pingpong -g 0 -q 1 -r 20 -c", "ibv_srq_pingpong -g 0 -q 1 -e")
	})
	t.Run("perftest", func(t *testing.T) {
		n.perftests(t, "ib_send_bw --use_old_post_send", "ib_write_lat --use_old_post_send",
			"ib_read_bw --use_old_post_send -q 4", "ib_atomic_lat --use_old_post_send",
			"ib_send_lat --use_old_post_send -c UD -s 256", "ib_send_lat -I 0 -s 64", "ib_send_lat -I 512 -s 512",
			"ib_write_lat -I 912 -s 912",
			"ib_send_bw -I 64 -s 64 -l 8", "ib_write_bw -x 0 -Q 1", "ib_send_lat -x 0 -m 512", "ib_write_bw --mr_per_qp -q 4",
			"ib_send_bw -r 16 -t 8 -s 4096", "ib_send_bw --recv_post_list 8 -l 8", "ib_write_bw -b --report-both",
			"ib_send_bw --reversed")
	})
	t.Run("on-demand paging", func(t *testing.T) {
		out, err := a.Run(lab.Patience, "ibv_devinfo", "-v")
		if err != nil {
			t.Fatal(err, out)
		}
		if !strings.Contains(out, "ODP_SUPPORT") {
			t.Skip("the kernel is older than 6.11")
		}
		n.pingPongs(t, "ibv_rc_pingpong -g 0 -o -c", "ibv_rc_pingpong -g 0 -O -P -c -s 262144", "ibv_srq_pingpong -g 0 -q 1 -o")
		n.perftests(t, "ib_write_bw --odp", "ib_read_bw --odp -q 4", "ib_send_bw --odp -s 100000", "ib_write_lat --odp")
	})
	t.Run("infinitely", n.infinitely)
	t.Run("missing", func(t *testing.T) { missing(t, a) })
}

func (n *byNumber) pingPongs(t *testing.T, lines ...string) {
	for _, line := range lines {
		t.Run(line, func(t *testing.T) {
			words := strings.Fields(line)
			r := n.run(t, "roce", words[0], slices.Concat([]string{"-n", "200"}, words[1:])...)
			for side, output := range map[string]string{"server": r.Server, "client": r.Client} {
				if !strings.Contains(output, " iters in ") || strings.Contains(output, "invalid data") {
					t.Errorf("%s:\n%s", side, output)
				}
			}
		})
	}
}

func (n *byNumber) perftests(t *testing.T, lines ...string) {
	for _, line := range lines {
		t.Run(line, func(t *testing.T) {
			words := strings.Fields(line)
			r := n.run(t, "roce", words[0], slices.Concat([]string{"-F", "-n", "200"}, words[1:])...)
			if _, err := lab.ParsePerftest(r.Client + r.Server); err != nil {
				t.Error(err)
			}
		})
	}
}

// rows counts the lines of perftest's table.
func rows(output string) int {
	list, _ := lab.ParsePerftest(output)
	return len(list)
}

// infinitely runs perftest without an end until it has reported twice. Then both programs are killed, and none of
// their objects may remain.
func (n *byNumber) infinitely(t *testing.T) {
	whole(t)
	for _, program := range []string{"ib_write_bw", "ib_send_bw"} {
		t.Run(program, func(t *testing.T) {
			need(t, program)
			port := programtest.FreePort(t)
			argv := []string{"env", "URDMA_TRANSPORT=roce", program, "-F", "--run_infinitely", "-D", "1", "-p",
				strconv.Itoa(port)}
			server, err := lab.Pair{ServerNode: n.server, Server: argv, TCPPort: port}.StartServer()
			if err != nil {
				t.Fatal(err)
			}
			defer server.Kill()
			client, err := n.client.Exec(append(argv, n.tcp)...)
			if err != nil {
				t.Fatal(err)
			}
			defer client.Kill()
			count(t, client, lab.Patience, 2, rows)
			client.Kill()
			server.Kill()
			holdNothing(t, n.server, n.client)
		})
	}
}

// missing runs programs with options that no port supports: they must end with their own message, which names the
// option.
func missing(t *testing.T, n *lab.Node) {
	for _, c := range []struct{ line, says string }{
		{"ib_atomic_bw --odp", "ODP does not support ATOMICS"},
		{"raw_ethernet_bw --server -B 02:00:00:00:00:01", "QP"},
		{"raw_ethernet_lat --server -B 02:00:00:00:00:01 -E 02:00:00:00:00:02", "QP"},
		// it ends before
		{"raw_ethernet_burst_lat --server -B 02:00:00:00:00:01 -E 02:00:00:00:00:02", "SW Rate limiter"},
		{"raw_ethernet_fs_rate --server -B 02:00:00:00:00:01", "QP"},
	} {
		t.Run(c.line, func(t *testing.T) {
			argv := append([]string{"env", "URDMA_TRANSPORT=roce"}, strings.Fields(c.line)...)
			need(t, argv[2])
			p, err := n.Exec(argv...)
			if err != nil {
				t.Fatal(err)
			}
			err = p.Wait(lab.Patience)
			t.Logf("%v: %s", err, p.Output())
			if err == nil || strings.Contains(err.Error(), "signal") || !strings.Contains(p.Output(), c.says) {
				t.Errorf("ended with %v, expected a failure of its own that names %s:\n%s", err, c.says, p.Output())
			}
		})
	}
}
