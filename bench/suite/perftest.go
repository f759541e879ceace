package suite

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"urdma/test/lab"
	"urdma/wire"
)

// mib is what perftest calls a MB.
const mib = 1 << 20

// pingPongs is the number of round trips for a latency: some tenths of a second on the fastest wire.
const pingPongs = 50000

// bandwidth measures one of perftest's bw programs, in Gb/s, or in million
// messages a second for messages.
func bandwidth(w lab.Wire, messages bool, program string, args ...string) func(*bench) ([]float64, error) {
	return func(b *bench) ([]float64, error) {
		row, _, err := b.rate(w, program, args...)
		switch {
		case err != nil:
			return nil, err
		case messages:
			return []float64{bytesPerSecond(row) / float64(row.Bytes) / 1e6}, nil
		}
		return []float64{bytesPerSecond(row) * 8 / 1e9}, nil
	}
}

// bandwidthAndTime is bandwidth, in Gb/s, and the processor time of both programs and both urdmads in seconds per
// GB.
func bandwidthAndTime(w lab.Wire, program string, args ...string) func(*bench) ([]float64, error) {
	return func(b *bench) ([]float64, error) {
		hosts, err := b.places.join(w)
		if err != nil {
			return nil, err
		}
		before, err := hosts.used()
		if err != nil {
			return nil, err
		}
		row, programs, err := b.rate(w, program, args...)
		if err != nil {
			return nil, err
		}
		after, err := hosts.used()
		return rateAndTime(row, after-before+programs), err
	}
}

// bandwidthAndDaemons is bandwidthAndTime with the processor time of the urdmads alone.
func bandwidthAndDaemons(w lab.Wire, program string, args ...string) func(*bench) ([]float64, error) {
	return func(b *bench) ([]float64, error) {
		hosts, err := b.places.join(w)
		if err != nil {
			return nil, err
		}
		before, err := hosts.used()
		if err != nil {
			return nil, err
		}
		row, _, err := b.rate(w, program, args...)
		if err != nil {
			return nil, err
		}
		after, err := hosts.used()
		return rateAndTime(row, after-before), err
	}
}

func rateAndTime(row lab.Row, used time.Duration) []float64 {
	return []float64{bytesPerSecond(row) * 8 / 1e9, used.Seconds() / (float64(row.Bytes) * float64(row.Iterations) / 1e9)}
}

// used is the processor time of the urdmads so far.
func (p pair) used() (total time.Duration, err error) {
	for _, n := range p.nodes() {
		used, err := n.Daemon.ProcessorTime()
		if err != nil {
			return 0, err
		}
		total += used
	}
	return total, nil
}

// segmentBytes is the payload of a tagged segment in a packet of 1,500 bytes.
const segmentBytes = 1500 - wire.IPv4Len - wire.UDPLen - wire.TRPExtLen - wire.TaggedLen

// bandwidthAndPackets is bandwidth over an MTU of 1,500, in Gb/s, and the rate of packets in million per second,
// each counted once.
func bandwidthAndPackets(w lab.Wire, program string, args ...string) func(*bench) ([]float64, error) {
	return func(b *bench) ([]float64, error) {
		row, _, err := b.rate(w, program, args...)
		if err != nil {
			return nil, err
		}
		packets := (row.Bytes + segmentBytes - 1) / segmentBytes
		rate := bytesPerSecond(row)
		return []float64{rate * 8 / 1e9, rate / float64(row.Bytes) * float64(packets) / 1e6}, nil
	}
}

func bytesPerSecond(row lab.Row) float64 { return row.Values[lab.BandwidthAverage] * mib }

// rate runs one of perftest's bw programs for the length of a measurement. Unless the margin is 0, a run of 4 s or
// more leaves out its first and last quarter; the processor time includes them.
func (b *bench) rate(w lab.Wire, program string, args ...string) (lab.Row, time.Duration, error) {
	rows, used, err := b.perftestRows(w, program,
		append([]string{"-D", strconv.Itoa(b.wholeSeconds()), "-f", "0"}, args...)...)
	if err != nil {
		return lab.Row{}, 0, err
	}
	return rows[len(rows)-1], used, nil
}

// together runs several pairs of one of perftest's bw programs at once and returns the sum of their rates in Gb/s.
func together(w lab.Wire, pairs int, program string, args ...string) func(*bench) ([]float64, error) {
	return func(b *bench) ([]float64, error) {
		if _, err := b.places.join(w); err != nil { // otherwise all pairs would set the hosts up at once
			return nil, err
		}
		rates, errs := make([]float64, pairs), make([]error, pairs)
		var all sync.WaitGroup
		for i := range pairs {
			all.Go(func() {
				row, _, err := b.rate(w, program, append([]string{"-p", strconv.Itoa(firstPort + i)}, args...)...)
				if errs[i] = err; err == nil {
					rates[i] = bytesPerSecond(row) * 8 / 1e9
				}
			})
		}
		all.Wait()
		total := 0.0
		for _, r := range rates {
			total += r
		}
		return []float64{total}, errors.Join(errs...)
	}
}

// firstPort is the port number of the first of several servers.
const firstPort = 18600

// latency measures half a round trip in µs: median and 99th percentile.
func latency(w lab.Wire, program string, args ...string) func(*bench) ([]float64, error) {
	return func(b *bench) ([]float64, error) {
		row, err := b.perftest(w, program, append([]string{"-n", strconv.Itoa(pingPongs), "-s", "8"}, args...)...)
		if err != nil {
			return nil, err
		}
		return []float64{row.Values[lab.LatencyTypical], row.Values[lab.LatencyPercent99]}, nil
	}
}

// perftest runs a program between the two hosts of a wire and returns the only row that it prints.
func (b *bench) perftest(w lab.Wire, program string, args ...string) (lab.Row, error) {
	rows, _, err := b.perftestRows(w, program, args...)
	if err != nil {
		return lab.Row{}, err
	}
	return rows[len(rows)-1], nil
}

// perftestRows also returns the processor time of both programs.
func (b *bench) perftestRows(w lab.Wire, program string, args ...string) ([]lab.Row, time.Duration, error) {
	hosts, err := b.places.join(w)
	if err != nil {
		return nil, 0, err
	}
	p := lab.PerftestPair(hosts.a, hosts.b, program, args...)
	p.Limit = 90 * time.Second
	r, err := p.Run()
	if err != nil {
		return nil, 0, fmt.Errorf("%s over %s: %w", program, w.Name, err)
	}
	rows, err := lab.ParsePerftest(r.Client)
	return rows, r.Used, err
}
