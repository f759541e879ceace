// Command scaling draws the plots of docs/scaling.md from the output of go test on its standard input: of
// BenchmarkPairs (urdmad/core/engine), and of the simulations of many hosts (urdmad/core/reliable/reliabletest) with
// -v. Its argument is the directory for pairs.svg and hosts.svg. `make scaling` runs all of it.
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"

	"urdma/bench/report"
	"urdma/bench/results"
)

var (
	pairs = regexp.MustCompile(`^BenchmarkPairs/(\d+)/(\d+)pairs.* ([\d.]+) cpu-ns/segment`)
	test  = regexp.MustCompile(`^=== RUN +Test(Incast|AllToAll)$`)
	hosts = regexp.MustCompile(`: +(\d+) hosts, +(\d+) KiB, a queue of +(\d+) KiB, loss of 0: first .*, all +([\d.]+) of ideal`)
)

// add appends a point to the curve of a name.
func add(s *results.Sweep, name, x, y string, unit float64) {
	p := results.Point{}
	p.X, _ = strconv.ParseFloat(x, 64) // a pattern has matched a number
	p.Y, _ = strconv.ParseFloat(y, 64)
	p.Y /= unit
	for i := range s.Curves {
		if s.Curves[i].Name == name {
			s.Curves[i].Points = append(s.Curves[i].Points, p)
			return
		}
	}
	s.Curves = append(s.Curves, results.Curve{Name: name, Points: []results.Point{p}})
}

// read returns what the output has of both plots.
func read(r io.Reader) (sweeps []results.Sweep, err error) {
	cost := results.Sweep{ID: "pairs", Title: "Each message on another connection", X: "connections",
		Unit: "µs of both hosts and programs"}
	exchange := results.Sweep{ID: "hosts", Title: "64 KiB from all at once, until the last has arrived", X: "hosts",
		Unit: "of ideal time"}
	shape := ""
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := lines.Text()
		if m := pairs.FindStringSubmatch(line); m != nil {
			name := "Write of 64 B"
			if m[1] != "64" {
				name = "segment of a Write of 64 KiB"
			}
			add(&cost, name, m[2], m[3], 1000)
		}
		if m := test.FindStringSubmatch(line); m != nil {
			shape = map[string]string{"Incast": "to one", "AllToAll": "to each other"}[m[1]]
		}
		if m := hosts.FindStringSubmatch(line); m != nil && m[2] == "64" && m[3] != "0" {
			add(&exchange, fmt.Sprintf("%s, queue of %s KiB", shape, m[3]), m[1], m[4], 1)
		}
	}
	return []results.Sweep{cost, exchange}, lines.Err()
}

func run(dir string) error {
	sweeps, err := read(os.Stdin)
	if err != nil {
		return err
	}
	return report.Plots(dir, &results.Run{Sweeps: sweeps})
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: scaling DIRECTORY, with the output of go test on standard input")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "scaling:", err)
		os.Exit(1)
	}
}
