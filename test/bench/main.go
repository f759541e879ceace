// Command bench prints urdma and kernel TCP side by side, in one run on one
// machine: ib_write_bw beside iperf3, ib_write_lat beside sockperf, in turns,
// with medians and ratios: over memif, and over UDP sockets on the same kind of
// veth that TCP has. It asserts nothing.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"urdma/test/lab"
)

func main() {
	build := flag.String("build", "build", "`directory` with urdmad, urdma and liburdma.so")
	rounds := flag.Int("rounds", 5, "how often each is measured")
	mtu := flag.Int("mtu", 9000, "MTU of both wires, bytes; UDP is measured at 1500 as well")
	flag.Parse()
	if os.Getuid() != 0 {
		fail(errors.New("kernel TCP needs two network namespaces, which needs root"))
	}
	for _, c := range comparisons(*mtu) {
		if err := run(*build, *rounds, c); err != nil {
			fail(err)
		}
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "bench:", err)
	os.Exit(1)
}

// comparisons are the wires of ours to measure.
func comparisons(mtu int) []lab.Wire {
	memif, udp, ethernet := lab.Memif, lab.UDP, lab.UDP
	memif.MTU, udp.MTU, ethernet.MTU = mtu, mtu, 1500
	if mtu == ethernet.MTU {
		return []lab.Wire{memif, udp}
	}
	return []lab.Wire{memif, udp, ethernet}
}

// sample is one figure of each side, taken one after the other.
type sample struct{ ours, theirs float64 }

func run(build string, rounds int, wire lab.Wire) error {
	l, err := lab.New(build)
	if err != nil {
		return err
	}
	defer l.Close()
	a, b, err := l.Join(wire, nil)
	if err != nil {
		return err
	}
	k, err := l.JoinKernel(wire.MTU)
	if err != nil {
		return err
	}
	var bandwidth, latency []sample
	for i := range rounds {
		fmt.Printf("%s, MTU %d: round %d of %d\n", wire.Name, wire.MTU, i+1, rounds)
		s, err := bandwidths(a, b, k)
		if err != nil {
			return err
		}
		bandwidth = append(bandwidth, s)
		if s, err = latencies(a, b, k); err != nil {
			return err
		}
		latency = append(latency, s)
	}
	return report(wire, bandwidth, latency)
}

// bandwidths in Gb/s.
func bandwidths(a, b *lab.Node, k *lab.KernelPair) (s sample, err error) {
	if s.ours, err = perftest(a, b, "ib_write_bw", lab.BandwidthAverage, "-s", "65536", "-n", "20000"); err != nil {
		return s, err
	}
	s.ours *= (1 << 20) * 8 / 1e9 // perftest's MB are of 2^20 bytes
	out, err := k.Run(30*time.Second, []string{"iperf3", "-s", "-1"}, []string{"iperf3", "-c", k.Address, "-t", "3", "-J"})
	if err != nil {
		return s, err
	}
	var r struct {
		End struct {
			Received struct {
				Rate float64 `json:"bits_per_second"`
			} `json:"sum_received"`
		} `json:"end"`
	}
	if err := json.Unmarshal([]byte(out), &r); err != nil || r.End.Received.Rate == 0 {
		return s, fmt.Errorf("iperf3 printed no rate (%v):\n%s", err, lab.Tail(out, 10))
	}
	s.theirs = r.End.Received.Rate / 1e9
	return s, nil
}

var sockperfLatency = regexp.MustCompile(`Latency is ([0-9.]+) usec`)

// latencies: half a round trip in µs.
func latencies(a, b *lab.Node, k *lab.KernelPair) (s sample, err error) {
	if s.ours, err = perftest(a, b, "ib_write_lat", lab.LatencyTypical, "-s", "64", "-n", "20000"); err != nil {
		return s, err
	}
	out, err := k.Run(30*time.Second, []string{"sockperf", "sr", "--tcp", "-i", k.Address},
		[]string{"sockperf", "ping-pong", "--tcp", "-i", k.Address, "-m", "64", "-t", "3"})
	if err != nil {
		return s, err
	}
	m := sockperfLatency.FindStringSubmatch(out)
	if m == nil {
		return s, fmt.Errorf("sockperf printed no latency:\n%s", lab.Tail(out, 10))
	}
	s.theirs, err = strconv.ParseFloat(m[1], 64)
	return s, err
}

func perftest(a, b *lab.Node, program string, column int, args ...string) (float64, error) {
	r, err := lab.PerftestPair(a, b, program, args...).Run()
	if err != nil {
		return 0, fmt.Errorf("%s: %w", program, err)
	}
	rows, err := lab.ParsePerftest(r.Client)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", program, err)
	}
	return rows[0].Values[column], nil
}

func report(wire lab.Wire, bandwidth, latency []sample) error {
	fmt.Printf("\nMTU %d on both wires, two hosts on one machine. Medians of %d rounds (least to most).\n\n", wire.MTU, len(bandwidth))
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 3, ' ', 0)
	fmt.Fprintf(w, "\turdma over %s\tkernel TCP over veth\tratio\t\n", wire.Name)
	line(w, "64 KiB RDMA Writes | iperf3, Gb/s", bandwidth, func(s sample) float64 { return s.ours / s.theirs })
	line(w, "64 B RDMA Write | sockperf (blocking), half a round trip, µs", latency, func(s sample) float64 { return s.theirs / s.ours })
	fmt.Fprintln(w)
	return w.Flush()
}

// line prints a comparison; the ratio is of each round's own pair, and says how
// many times better urdma is.
func line(w *tabwriter.Writer, what string, samples []sample, ratio func(sample) float64) {
	pick := func(f func(sample) float64) string {
		var v []float64
		for _, s := range samples {
			v = append(v, f(s))
		}
		slices.Sort(v)
		return fmt.Sprintf("%.1f (%.1f to %.1f)", v[len(v)/2], v[0], v[len(v)-1])
	}
	fmt.Fprintf(w, "%s\t%s\t%s\t%s\t\n", what, pick(func(s sample) float64 { return s.ours }),
		pick(func(s sample) float64 { return s.theirs }), pick(ratio))
}
