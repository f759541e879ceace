package suite

import (
	"slices"
	"time"

	"urdma/test/lab"
)

// fairness keeps flows queue pairs busy with Writes of 64 KiB and returns the lowest share divided by the mean.
func fairness(w lab.Wire, flows int) func(*bench) ([]float64, error) {
	return func(b *bench) ([]float64, error) {
		hosts, err := b.places.join(w)
		if err != nil {
			return nil, err
		}
		const size, depth = 64 << 10, 4
		e, err := connect(hosts, flows, 2*depth, size)
		if err != nil {
			return nil, err
		}
		defer e.close()
		got := make([]int, flows)
		total := 0
		if err := e.stream(size, depth, b.under(), func(i int, _ time.Time) { got[i]++; total++ }); err != nil {
			return nil, err
		}
		if total == 0 {
			return nil, errNothing
		}
		return []float64{float64(slices.Min(got)) * float64(flows) / float64(total)}, nil
	}
}

// steadySeconds is the length of longestGap if other measurements take 1 s: a minute if they take 2 s.
const steadySeconds = 30

// longestGap keeps one queue pair busy with Writes of 64 KiB and returns the longest time between two completions,
// in ms.
func longestGap(w lab.Wire) func(*bench) ([]float64, error) {
	return func(b *bench) ([]float64, error) {
		hosts, err := b.places.join(w)
		if err != nil {
			return nil, err
		}
		const size, depth = 64 << 10, 16
		e, err := connect(hosts, 1, 2*depth, size)
		if err != nil {
			return nil, err
		}
		defer e.close()
		var last time.Time
		var longest time.Duration
		err = e.stream(size, depth, steadySeconds*b.under(), func(_ int, now time.Time) {
			if !last.IsZero() {
				longest = max(longest, now.Sub(last))
			}
			last = now
		})
		if err == nil && last.IsZero() {
			err = errNothing
		}
		return []float64{float64(longest) / 1e6}, err
	}
}

// latencyBeside is latency while ib_write_bw keeps the same wire busy.
func latencyBeside(w lab.Wire, program string) func(*bench) ([]float64, error) {
	return func(b *bench) ([]float64, error) {
		hosts, err := b.places.join(w)
		if err != nil {
			return nil, err
		}
		busy := lab.PerftestPair(hosts.a, hosts.b, "ib_write_bw", "-p", "18600", "-s", "65536", "-D", "60")
		server, err := busy.StartServer()
		if err != nil {
			return nil, err
		}
		defer server.Kill()
		client, err := busy.ClientNode.Exec(busy.Client...)
		if err != nil {
			return nil, err
		}
		defer client.Kill()
		if err := moves(hosts.b); err != nil {
			return nil, err
		}
		// A tenth of the usual round trips: each may take ten times as long.
		row, err := b.perftest(w, program, "-n", "5000", "-s", "8")
		if err != nil {
			return nil, err
		}
		return []float64{row.Values[lab.LatencyTypical], row.Values[lab.LatencyPercent99]}, nil
	}
}
