package suite

import (
	"fmt"
	"strconv"
	"time"

	"urdma/test/lab"
)

// mib is what perftest calls a MB.
const mib = 1 << 20

// pingPongs is how many round trips a latency is measured over: enough for some
// tenths of a second on the fastest wire.
const pingPongs = 50000

// bandwidth measures one of perftest's bw programs, in Gb/s, or in million
// messages a second for messages.
func bandwidth(w lab.Wire, messages bool, program string, args ...string) func(*bench) ([]float64, error) {
	return func(b *bench) ([]float64, error) {
		args := append([]string{"-D", strconv.Itoa(b.wholeSeconds())}, args...)
		row, err := b.perftest(w, program, args...)
		if err != nil {
			return nil, err
		}
		rate := row.Values[lab.BandwidthAverage] * mib // bytes a second
		if messages {
			return []float64{rate / float64(row.Bytes) / 1e6}, nil
		}
		return []float64{rate * 8 / 1e9}, nil
	}
}

// latency measures half a round trip in µs: the median, and the 99th
// percentile.
func latency(w lab.Wire, program string, args ...string) func(*bench) ([]float64, error) {
	return func(b *bench) ([]float64, error) {
		row, err := b.perftest(w, program, append([]string{"-n", strconv.Itoa(pingPongs), "-s", "8"}, args...)...)
		if err != nil {
			return nil, err
		}
		return []float64{row.Values[lab.LatencyTypical], row.Values[lab.LatencyPercent99]}, nil
	}
}

// perftest runs a program between the two hosts of a wire, and returns the one
// row that it printed.
func (b *bench) perftest(w lab.Wire, program string, args ...string) (lab.Row, error) {
	rows, err := b.perftestRows(w, program, args...)
	if err != nil {
		return lab.Row{}, err
	}
	return rows[len(rows)-1], nil
}

func (b *bench) perftestRows(w lab.Wire, program string, args ...string) ([]lab.Row, error) {
	hosts, err := b.places.join(w)
	if err != nil {
		return nil, err
	}
	p := lab.PerftestPair(hosts.a, hosts.b, program, args...)
	p.Limit = 90 * time.Second
	r, err := p.Run()
	if err != nil {
		return nil, fmt.Errorf("%s over %s: %w", program, w.Name, err)
	}
	return lab.ParsePerftest(r.Client)
}
