package e2e

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"urdma/test/lab"
	"urdma/test/lab/labtest"
	"urdma/test/programtest"
)

var update = flag.Bool("update", false, "write the table of docs/VERBS.md anew")

// transports are the values of the setting transport, in the table's order.
var transports = []string{"iwarp", "roce", "ib"}

// transportLine is a program as users type it.
type transportLine struct {
	server, client string // client "": the server's line and HOST
	tcp            bool   // they find each other by TCP
}

var transportLines = slices.Concat(
	[]transportLine{
		{"rping -s -C 5", "rping -c -a HOST -C 5", false},
		{"ucmatose", "ucmatose -s HOST", false},
		{"rdma_server", "rdma_client -s HOST", false},
		{"rdma_xserver -c x", "rdma_xclient -c x -s HOST", false},
		{"udaddy -b HOST", "udaddy -s HOST", false},
		{"rstream -b HOST -S 1000 -C 10 -I 10", "rstream -s HOST -S 1000 -C 10 -I 10", false},
	},
	byTCP("ibv_rc_pingpong", "ibv_rc_pingpong -g 0", "ibv_uc_pingpong", "ibv_uc_pingpong -g 0", "ibv_ud_pingpong",
		"ibv_ud_pingpong -g 0",
		"ibv_srq_pingpong -q 1", "ibv_srq_pingpong -q 1 -g 0", "ibv_xsrq_pingpong", "ibv_xsrq_pingpong -g 0"),
	byTCP("ib_write_bw", "ib_write_lat", "ib_read_bw", "ib_read_lat", "ib_send_bw", "ib_send_lat", "ib_atomic_bw",
		"ib_atomic_lat",
		"ib_write_bw -c UC", "ib_send_lat -c UC", "ib_send_bw -c UD", "ib_send_lat -c UD", "ib_send_bw -c XRC",
		"ib_send_bw --use-srq -q 4"),
	byCM("ib_write_bw -R", "ib_write_lat -R", "ib_read_bw -R", "ib_read_lat -R", "ib_send_bw -R", "ib_send_lat -R",
		"ib_atomic_bw -R", "ib_atomic_lat -R",
		"ib_send_lat -R -c UD", "ib_send_bw -R --use-srq -q 4"),
	byTCP("fi_pingpong -p verbs -e msg", "fi_pingpong -p verbs;ofi_rxm -e rdm"),
)

func byTCP(lines ...string) (out []transportLine) {
	for _, l := range lines {
		out = append(out, transportLine{server: l, tcp: true})
	}
	return out
}

func byCM(lines ...string) (out []transportLine) {
	for _, l := range lines {
		out = append(out, transportLine{server: l})
	}
	return out
}

// argv completes a line: the server's address, and few rounds.
func (l *transportLine) argv(host string, port int) (server, client []string) {
	text := l.client
	if text == "" {
		text = l.server + " HOST"
	}
	var more string
	switch program := strings.Fields(l.server)[0]; {
	case program == "fi_pingpong": // its client has another option for the server's port number
		return strings.Fields(fmt.Sprintf("%s -I 10 -B %d", l.server, port)),
			strings.Fields(fmt.Sprintf("%s -I 10 -P %d %s", l.server, port, host))
	case strings.HasPrefix(program, "ib_"):
		more = fmt.Sprintf(" -F -n 100 -p %d", port)
	case strings.HasPrefix(program, "ibv_"):
		more = fmt.Sprintf(" -n 100 -p %d", port)
	case program == "udaddy": // has no option for it
	default:
		more = fmt.Sprintf(" -p %d", port)
	}
	fill := func(s string) []string { return strings.Fields(strings.ReplaceAll(s+more, "HOST", host)) }
	return fill(l.server), fill(text)
}

// works runs a line on one urdmad.
func (l *transportLine) works(t *testing.T, n *lab.Node, transport string, limit time.Duration) bool {
	t.Helper()
	host, port := n.Address, programtest.FreePort(t)
	if l.tcp {
		host = "127.0.0.1"
	}
	p := lab.Pair{ServerNode: n, ClientNode: n, Limit: limit}
	if p.Server, p.Client = l.argv(host, port); l.tcp {
		p.TCPPort = port
	}
	if strings.Contains(l.server, "XRC") {
		forgetXRCFiles(t)
	}
	need(t, p.Server[0])
	p.ShownAs(transport)
	for try := 1; ; try++ {
		r, err := p.Run()
		if err == nil || try == lab.MeasuredTries || !lab.Unmeasured(r.Client+r.Server) {
			if err != nil {
				t.Logf("%s: %v: %v", transport, p.Client, lab.Tail(err.Error(), 12))
			}
			return err == nil
		}
	}
}

// row runs a line under each transport and returns its row of the table. The row must be as written, unless it is
// being written.
func (l *transportLine) row(t *testing.T, n *lab.Node, written string) string {
	t.Helper()
	row := "| `" + l.server + "` |"
	for i, transport := range transports {
		if cells := strings.Split(written, "|"); len(cells) > 2+i && cells[2+i] == byChance {
			row += byChance + "|"
			continue
		}
		limit := time.Minute
		if *update || !strings.HasPrefix(written, row+" yes ") {
			limit = 20 * time.Second // some wait for ever
		}
		answer := " no |"
		if l.works(t, n, transport, limit) {
			answer = " yes |"
		}
		row += answer
	}
	if row != written && !*update {
		t.Errorf("%s is out of date:\n%s\nexpected\n%s", transportTable, written, row)
	}
	return row
}

const (
	transportTable = "../../docs/VERBS.md"
	transportHead  = "| program | iwarp | roce | ib |\n|---|---|---|---|\n"
	byChance       = " at times " // written by hand, and not tested
)

// TestTransports compares the table of docs/VERBS.md, which says which program runs under which transport, with test
// runs. -update writes it.
func TestTransports(t *testing.T) {
	if !long && !*update {
		t.Skip("SKIPPED: a long test (URDMA_LONG=1)")
	}
	l := labtest.New(t)
	n, _ := labtest.JoinIn(t, l, lab.Loopback, nil)
	page, err := os.ReadFile(transportTable)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(page), transportHead)
	if !found {
		t.Fatalf("%s has no table that begins\n%s", transportTable, transportHead)
	}
	end := max(strings.Index(rest, "\n\n"), 0)
	written := map[string]string{}
	for row := range strings.SplitSeq(rest[:end], "\n") {
		if f := strings.Split(row, "`"); len(f) == 3 {
			written[f[1]] = row
		}
	}
	var now []string
	for _, line := range transportLines {
		row := written[line.server]
		t.Run(line.server, func(t *testing.T) { row = line.row(t, n, row) })
		now = append(now, row)
	}
	if !*update {
		if len(written) != len(now) {
			t.Errorf("%s has %d programs, expected %d", transportTable, len(written), len(now))
		}
		return
	}
	text := before + transportHead + strings.Join(now, "\n") + rest[end:]
	if err := os.WriteFile(transportTable, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
