// Command demo shows urdma at work in under two minutes, as an ordinary user:
// two urdmads joined by shared memory, then two joined by UDP sockets; over each,
// Debian's own rping with its data verified, then perftest, and one table.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"urdma/test/lab"
)

func main() {
	build := flag.String("build", "build", "`directory` with urdmad, urdma and liburdma.so")
	flag.Parse()
	if err := run(*build); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(build string) error {
	who := fmt.Sprintf("user %d", os.Getuid())
	if os.Getuid() == 0 {
		who = fmt.Sprintf("user %d (started by root, who is not needed)", lab.OrdinaryUID)
	}
	fmt.Printf("\nEverything below runs as %s: no RDMA hardware, no kernel module.\n", who)
	for _, s := range scenes {
		if err := s.show(build); err != nil {
			return err
		}
	}
	closing()
	return nil
}

// scene is two urdmads, and what joins them.
type scene struct {
	wire lab.Wire
	what string
}

var scenes = []scene{
	{lab.Memif.Jumbo(), "Two urdmads of one machine joined by memif, a wire of shared memory, MTU 9000"},
	{lab.UDP, "Two urdmads in two network namespaces joined by UDP sockets of the kernel, as two machines are, MTU 1500"},
	{lab.TCP, "The same over TCP sockets: iWARP, as the kernel's siw and iWARP NICs speak it"},
}

// show runs a scene's programs, or says what it would take.
func (s scene) show(build string) error {
	l, err := lab.New(build)
	if err != nil {
		return err
	}
	defer l.Close()
	fmt.Printf("\n%s.\n\n", s.what)
	if err := l.Can(s.wire); err != nil {
		fmt.Printf("left out: %v\n", err)
		return nil
	}
	a, b, err := l.Join(s.wire, nil)
	if err != nil {
		return err
	}
	if err := rping(a, b); err != nil {
		return err
	}
	return perftest(a, b)
}

// rping checks data in both directions: -V compares what came back.
func rping(a, b *lab.Node) error {
	const pings = 1000
	begin := time.Now()
	r, err := lab.Pair{ServerNode: a, ClientNode: b,
		Server: []string{"rping", "-s", "-V", "-C", fmt.Sprint(pings)},
		Client: []string{"rping", "-c", "-v", "-V", "-C", fmt.Sprint(pings), "-a", a.Address}}.Run()
	if err != nil {
		return fmt.Errorf("rping: %w", err)
	}
	if got := strings.Count(r.Client, "ping data: rdma-ping-"); got != pings {
		return fmt.Errorf("rping printed %d pings, expected %d", got, pings)
	}
	fmt.Printf("rping   %d pings by RDMA Read, Write and Send, every byte verified, in %v\n\n", pings,
		time.Since(begin).Round(time.Millisecond))
	return nil
}

// measurement is one line of the table.
type measurement struct {
	what, program string
	args          []string
}

var measurements = []measurement{
	{"Send, 2 bytes", "ib_send_lat", nil},
	{"RDMA Write, 2 bytes", "ib_write_lat", nil},
	{"RDMA Read, 2 bytes", "ib_read_lat", nil},
	{"Send, 64 KiB", "ib_send_bw", nil},
	{"RDMA Write, 64 KiB", "ib_write_bw", nil},
	{"RDMA Read, 64 KiB", "ib_read_bw", nil},
}

func perftest(a, b *lab.Node) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "operation\tprogram (-R)\tresult\t")
	for _, m := range measurements {
		r, err := lab.PerftestPair(a, b, m.program, m.args...).Run()
		for try := 1; err != nil && lab.Unmeasured(r.Client+r.Server) && try < lab.MeasuredTries; try++ {
			r, err = lab.PerftestPair(a, b, m.program, m.args...).Run()
		}
		if err != nil {
			return fmt.Errorf("%s: %w", m.program, err)
		}
		rows, err := lab.ParsePerftest(r.Client)
		if err != nil {
			return fmt.Errorf("%s: %w", m.program, err)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t\n", m.what, m.program, result(m.program, rows[0]))
	}
	return w.Flush()
}

func result(program string, r lab.Row) string {
	if strings.HasSuffix(program, "_lat") {
		return fmt.Sprintf("%5.1f µs typical, %.1f µs average", r.Values[lab.LatencyTypical], r.Values[lab.LatencyAverage])
	}
	// perftest's MB are of 2^20 bytes.
	return fmt.Sprintf("%5.1f Gb/s", r.Values[lab.BandwidthAverage]*(1<<20)*8/1e9)
}

func closing() {
	fmt.Printf(`
(Latency is half a round trip for Send and Write, a whole one for Read. Both
urdmads and both programs share this machine's processors.)

To try next:
  build/urdma run -- ibv_devinfo                       what programs see; any program of yours that uses libibverbs
  build/urdma run --hosts 2 -- rping -s -C 5 :: rping -c -a 198.18.0.1 -V -v -C 5
  build/urdma config init                              a urdma.json to start from; see README.md
  make bench                                           the same beside kernel TCP
`)
}
