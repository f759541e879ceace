package vm

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"urdma/test/lab"
)

var (
	typed = flag.Bool("type", false, "write the tables of docs/interworking.md and docs/nics.md")
	only  = flag.String("only", "", "run programs, or a card's steps, with this in their names")
)

// program runs on both sides; @ stands for the server's address, % for the address of the side that runs it, # for
// the index of its GID.
type program struct {
	name           string
	server, client string
	tcp            int      // TCP port of the server; 0: that of rdma_cm
	ready          string   // what a server prints when it is ready, if it does not listen
	wants          []string // in the output of both
	stays          bool     // the server is ended, because it does not end by itself
	after          string   // must succeed on the server's side when the client has ended
}

// TestInterworking runs each program with the kernel's provider as server and as client.
func TestInterworking(t *testing.T) {
	t.Run("siw", func(t *testing.T) {
		m, table := newMachine(t, lab.TCP), &table{t: t, tries: 8, seconds: 30}
		for i, s := range settings {
			m.run(30, "use-siw "+s.parameters)
			table.begin(heading(s.name, s.parameters), "siw")
			for _, p := range siwPrograms() {
				if i == 0 || slices.Contains(short, p.name) {
					table.line(m, &p)
				}
			}
			if i == 0 {
				table.ends(m)
			}
		}
		table.compare("siw")
	})
	t.Run("rxe", func(t *testing.T) {
		for name, w := range map[string]lab.Wire{"UDP sockets": lab.RoCE, "frames": lab.RoCEFrames} {
			section := func(name, heading string, w lab.Wire, rows func(*table, *machine)) {
				t.Run(name, func(t *testing.T) {
					m, table := newMachine(t, w), &table{t: t, tries: 3, seconds: 25}
					m.run(30, "use-rxe")
					table.begin(heading, "rxe")
					rows(table, m)
					table.compare("rxe over " + name)
				})
			}
			section(name, "rxe, over "+name, w, func(b *table, m *machine) { b.lines(m, rxePrograms()) })
			section(name+" by perftest", "rxe, over "+name+": perftest", w,
				func(b *table, m *machine) { b.lines(m, perftests()) })
			section(name+" of 9,000 bytes", "rxe, over "+name+", at an MTU of 9,000", w.Jumbo(),
				func(b *table, m *machine) { b.lines(m, jumboPrograms()) })
			section(name+" that are lost", "rxe, over "+name+": losses, outages, ends", w, func(b *table, m *machine) {
				b.disturbed(m)
				b.ends(m)
			})
		}
	})
}

// table is the expected contents of a section of docs/interworking.md.
type table struct {
	t              *testing.T
	text           strings.Builder
	tries, seconds int // limits for a program
}

func (b *table) begin(heading, kernel string) {
	fmt.Fprintf(&b.text, "\n## %s\n\n| | %s serves | urdma serves |\n|---|---|---|\n", heading, kernel)
}

// line runs a program in both directions.
func (b *table) line(m *machine, p *program) {
	if strings.Contains(p.name, *only) {
		b.say(p.name, b.try(p, m.kernelServes), b.try(p, m.urdmaServes))
	}
}

func (b *table) lines(m *machine, programs []program) {
	for i := range programs {
		b.line(m, &programs[i])
	}
}

// ends kills either side.
func (b *table) ends(m *machine) {
	if strings.Contains("kill", *only) {
		b.say("kill -9 of the client", m.killed(true, false), m.killed(false, false))
		b.say("kill -9 of the server", m.killed(true, true), m.killed(false, true))
	}
}

// disturbed loses packets, if urdmad can be asked for that, and takes the link down.
func (b *table) disturbed(m *machine) {
	if !lab.Core() {
		b.lossy(m)
	}
	b.cut(m)
}

func (b *table) lossy(m *machine) {
	for _, loss := range []string{"1%", "5%"} {
		for _, line := range []string{"ib_write_bw -s 65536 -n 50", "ib_read_bw -s 65536 -n 50", "ib_send_bw -s 65536 -n 50",
			"ib_atomic_bw -n 200 -A FETCH_AND_ADD"} {
			p := byNumber(line)
			p.name += ", " + loss + " of the packets lost each way"
			if !strings.Contains(p.name, *only) {
				continue
			}
			if _, err := m.host.Urdma("inject", "wire", "urdma0", "loss="+loss, "seed=7"); err != nil {
				b.t.Fatal(err)
			}
			b.line(m, &p)
			if _, err := m.host.Urdma("inject", "clear"); err != nil {
				b.t.Fatal(err)
			}
		}
	}
}

func (b *table) cut(m *machine) {
	const away = "the link goes away for 2 s"
	if strings.Contains(away, *only) {
		p := program{name: away, server: "rping -s -a @ -C 2000 -S 1000", client: "rping -c -a @ -C 2000 -S 1000"}
		cut := func(serve func(int, *program) (string, error)) func(int, *program) (string, error) {
			return func(seconds int, p *program) (string, error) {
				over := make(chan error)
				go func() {
					time.Sleep(2 * time.Second)
					err := m.host.Net.Run("ip", "link", "set", "veth0", "down")
					time.Sleep(2 * time.Second)
					if err == nil {
						err = m.host.Net.Run("ip", "link", "set", "veth0", "up")
					}
					over <- err
				}()
				out, err := serve(seconds, p)
				return out, errors.Join(<-over, err)
			}
		}
		patient := *b
		patient.seconds = 60
		b.say(away, patient.try(&p, cut(m.kernelServes)), patient.try(&p, cut(m.urdmaServes)))
	}
}

func (b *table) say(name string, kernel, urdma error) {
	for _, err := range []error{kernel, urdma} {
		if err != nil {
			b.t.Log(err)
		}
	}
	fmt.Fprintf(&b.text, "| %s | %s | %s |\n", name, said(kernel), said(urdma))
	b.t.Logf("%s: %s, %s", name, said(kernel), said(urdma))
}

// try runs a program. It tries several times, because perftest's servers sometimes listen too late, and siw may fail
// a last message when the peer exits.
func (b *table) try(p *program, serve func(int, *program) (string, error)) (err error) {
	var out string
	for range b.tries {
		if out, err = serve(b.seconds, p); err == nil {
			break
		}
		b.t.Logf("%s: %v", p.name, err)
	}
	for _, want := range p.wants {
		if err == nil && !strings.Contains(out, want) {
			err = fmt.Errorf("no %q in\n%s", want, out)
		}
	}
	return err
}

// said returns a cell of a table.
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

// containsLines reports whether each line of part is a line of whole.
func containsLines(whole, part string) bool {
	lines := strings.Split(whole, "\n")
	for line := range strings.SplitSeq(part, "\n") {
		if !slices.Contains(lines, line) {
			return false
		}
	}
	return true
}

// compare compares docs/interworking.md with the results, or writes it.
func (b *table) compare(name string) {
	if *only != "" {
		return
	}
	file := filepath.Join("..", "..", "docs", "interworking.md")
	text, err := os.ReadFile(file)
	if err != nil {
		b.t.Fatal(err)
	}
	const mark = "<!-- by test/vm: "
	begin := mark + name + " -->\n"
	above, rest, ok := strings.Cut(string(text), begin)
	if !ok {
		b.t.Fatalf("%s has no line %q", file, begin)
	}
	said, below, more := strings.Cut(rest, "\n"+mark)
	if said == b.text.String() || lab.Core() && containsLines(said, b.text.String()) {
		return
	}
	if !*typed {
		b.t.Errorf("%s says otherwise (go test ./test/vm -type writes it); seen:\n%s", file, b.text.String())
		return
	}
	if more {
		below = "\n" + mark + below
	}
	if err := os.WriteFile(file, []byte(above+begin+b.text.String()+below), 0o644); err != nil {
		b.t.Fatal(err)
	}
}
