package vm

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var (
	typed = flag.Bool("type", false, "write the tables of docs/interworking.md and docs/nics.md")
	only  = flag.String("only", "", "run programs with this in their names")
)

// program is one that runs on both sides; @ is the server's address.
type program struct {
	name           string
	server, client string
	wants          []string // in what both print
}

// settings are those of siw that an MPA start-up depends on.
var settings = []struct{ name, parameters string }{
	{"siw as it is", ""},
	{"CRC", "mpa_crc_required=1"},
	{"revision 1", "mpa_version=1"},
	{"peer to peer", "peer_to_peer=1"},
	{"peer to peer, CRC", "peer_to_peer=1 mpa_crc_required=1"},
}

func perftest(name, args string) program {
	line := name + " -R -F " + args
	return program{name + " " + args, line, line + " @", nil}
}

func programs() []program {
	all := []program{
		{"rping", "rping -s -a @ -C 20 -V", "rping -c -a @ -C 20 -V", nil},
		{"rping, 4,096 bytes", "rping -s -a @ -C 10 -V -S 4096", "rping -c -a @ -C 10 -V -S 4096", nil},
		{"rping, 65,535 bytes", "rping -s -a @ -C 10 -V -S 65535", "rping -c -a @ -C 10 -V -S 65535", nil},
		{"ucmatose, the server sends first", "ucmatose -b @ -C 10 -S 4000", "ucmatose -s @ -C 10 -S 4000", nil},
		{"rdma_server, rdma_client", "rdma_server", "rdma_client -s @", nil},
	}
	for _, p := range []string{"ib_write", "ib_read", "ib_send"} {
		for _, size := range []int{2, 4096, 1 << 20} {
			all = append(all, perftest(p+"_lat", fmt.Sprintf("-s %d -n 20", size)))
		}
		for _, size := range []int{2, 65536, 1 << 20} {
			all = append(all, perftest(p+"_bw", fmt.Sprintf("-s %d -n 20", size)))
		}
		all = append(all, perftest(p+"_bw", "-s 65536 -n 20 -q 16"))
	}
	all = append(all, program{"qperf -cm 1 rc_lat", "qperf", "qperf @ -cm 1 -t 1 rc_lat quit", nil})
	vector := func(mode, name string, wants ...string) {
		all = append(all, program{name, "wirevec -s " + mode, "wirevec -c @ " + mode, wants})
	}
	vector("ops", "messages of no bytes, private data both ways", "text 'server-data'", "private data 12 bytes 'client-data'", "read 4000: status=success")
	vector("reject", "reject with private data", "REJECTED", "private data 9 bytes 'not-today'")
	vector("imm", "immediate data is refused at the sender")
	vector("inv", "Send with Invalidate of memory that can't be, a Terminate")
	vector("bad-write", "Write with a wrong key, a Terminate", "Flushed")
	vector("bad-read", "Read with a wrong key, a Terminate", "read bad key: status=")
	vector("bounds-write", "Write past the end, a Terminate")
	vector("bounds-read", "Read past the end, a Terminate", "read past the end: status=")
	vector("norecv", "Send without a receive, a Terminate")
	vector("toolong", "Send that is too long, a Terminate", "local length error")
	return all
}

// short are the programs that run with each of siw's settings.
var short = []string{"rping", "rping, 65,535 bytes", "ucmatose, the server sends first", "ib_write_bw -s 65536 -n 20", "ib_read_bw -s 65536 -n 20",
	"ib_send_lat -s 2 -n 20", "messages of no bytes, private data both ways", "reject with private data", "Read with a wrong key, a Terminate"}

// TestInterworking runs each program with siw as server and as client.
func TestInterworking(t *testing.T) {
	m := newMachine(t)
	var table strings.Builder
	line := func(setting, name string, siw, urdma error) {
		for _, err := range []error{siw, urdma} {
			if err != nil {
				t.Log(err)
			}
		}
		fmt.Fprintf(&table, "| %s | %s | %s |\n", name, said(siw), said(urdma))
		t.Logf("%s, %s: %s, %s", setting, name, said(siw), said(urdma))
	}
	try := func(name string, serve func(int, string, string) (string, error), p program) (err error) {
		var out string
		// perftest's servers now and then listen too late, and siw fails a last message as
		// the peer leaves.
		for range 8 {
			if out, err = serve(30, p.server, p.client); err == nil {
				break
			}
			t.Logf("%s: %v", name, err)
		}
		for _, want := range p.wants {
			if err == nil && !strings.Contains(out, want) {
				err = fmt.Errorf("no %q in\n%s", want, out)
			}
		}
		return err
	}
	for i, s := range settings {
		m.run(30, "use-siw "+s.parameters)
		fmt.Fprintf(&table, "\n## %s\n\n", heading(s.name, s.parameters))
		table.WriteString("| | siw serves | urdma serves |\n|---|---|---|\n")
		for _, p := range programs() {
			if i > 0 && !slices.Contains(short, p.name) || !strings.Contains(p.name, *only) {
				continue
			}
			line(s.name, p.name, try(s.name+", siw serves "+p.name, m.siwServes, p), try(s.name+", urdma serves "+p.name, m.urdmaServes, p))
		}
		if i == 0 && strings.Contains("kill", *only) {
			line(s.name, "kill -9 of the client", m.killed(true, false), m.killed(false, false))
			line(s.name, "kill -9 of the server", m.killed(true, true), m.killed(false, true))
		}
	}
	if *only == "" {
		compare(t, table.String())
	}
}

// said is a cell of a table.
func said(err error) string {
	if err != nil {
		return "no"
	}
	return "yes"
}

func heading(name, parameters string) string {
	if parameters == "" {
		return name
	}
	return name + " (`" + parameters + "`)"
}

// compare holds docs/interworking.md to what was seen, or has it say so.
func compare(t *testing.T, table string) {
	file := filepath.Join("..", "..", "docs", "interworking.md")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const mark = "<!-- by test/vm -->\n"
	above, said, _ := strings.Cut(string(text), mark)
	if said == table {
		return
	}
	if !*typed {
		t.Errorf("%s says otherwise (go test ./test/vm -type writes it); seen:\n%s", file, table)
		return
	}
	if err := os.WriteFile(file, []byte(above+mark+table), 0o644); err != nil {
		t.Fatal(err)
	}
}
