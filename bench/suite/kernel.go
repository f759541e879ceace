package suite

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"urdma/test/lab"
)

// iperf3 measures one TCP stream over veth: Gb/s received, and processor seconds of both sides per GB.
func iperf3(mtu int) func(*bench) ([]float64, error) {
	return func(b *bench) ([]float64, error) {
		k, err := b.places.kernel(mtu)
		if err != nil {
			return nil, err
		}
		out, err := k.Run(time.Minute, []string{"iperf3", "-s", "-1"},
			[]string{"iperf3", "-c", k.Address, "-J", "-t", strconv.Itoa(b.wholeSeconds())})
		if err != nil {
			return nil, err
		}
		return parseIperf3(out)
	}
}

func parseIperf3(out string) ([]float64, error) {
	var r struct {
		End struct {
			Received struct {
				Seconds float64 `json:"seconds"`
				Bytes   float64 `json:"bytes"`
				Rate    float64 `json:"bits_per_second"`
			} `json:"sum_received"`
			Processor struct {
				Host   float64 `json:"host_total"` // percent of one processor
				Remote float64 `json:"remote_total"`
			} `json:"cpu_utilization_percent"`
		} `json:"end"`
	}
	if err := json.Unmarshal([]byte(out), &r); err != nil || r.End.Received.Bytes == 0 {
		return nil, fmt.Errorf("iperf3 printed no rate (%v):\n%s", err, lab.Tail(out, 10))
	}
	used := (r.End.Processor.Host + r.End.Processor.Remote) / 100 * r.End.Received.Seconds
	return []float64{r.End.Received.Rate / 1e9, used / (r.End.Received.Bytes / 1e9)}, nil
}

var (
	sockperfMedian = regexp.MustCompile(`percentile 50\.000 =\s*([0-9.]+)`)
	sockperf99     = regexp.MustCompile(`percentile 99\.000 =\s*([0-9.]+)`)
)

// oneSecond is enough for a latency: thousands of round trips.
const oneSecond = "1"

// sockperf measures half a round trip of 14 bytes, its smallest message, in µs: median and 99th percentile. Flags
// choose the protocol; "--nonblocked" polls the sockets.
func sockperf(flags ...string) func(*bench) ([]float64, error) {
	return func(b *bench) ([]float64, error) {
		k, err := b.places.kernel(1500)
		if err != nil {
			return nil, err
		}
		server := append([]string{"sockperf", "sr", "-i", k.Address}, flags...)
		client := append([]string{"sockperf", "ping-pong", "-i", k.Address, "-m", "14", "-t", oneSecond}, flags...)
		out, err := k.Run(time.Minute, server, client)
		if err != nil {
			return nil, err
		}
		return parseSockperf(out)
	}
}

func parseSockperf(out string) ([]float64, error) {
	var values []float64
	for _, r := range []*regexp.Regexp{sockperfMedian, sockperf99} {
		m := r.FindStringSubmatch(out)
		if m == nil {
			return nil, fmt.Errorf("sockperf printed no percentiles:\n%s", lab.Tail(out, 10))
		}
		v, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			return nil, err
		}
		values = append(values, v)
	}
	return values, nil
}
