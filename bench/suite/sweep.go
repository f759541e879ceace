package suite

import (
	"urdma/bench/results"
	"urdma/test/lab"
)

// sweepIterations is how many messages of each size a sweep sends.
const sweepIterations = "1000"

// sweep measures over sizes, once, on the wires that need no root.
func (b *bench) sweep() {
	wires := []lab.Wire{loopback, memif, memifJumbo}
	b.sizes("bandwidth", "Writes by size", "Gb/s", wires, func(w lab.Wire) ([]results.Curve, error) {
		rows, _, err := b.perftestRows(w, "ib_write_bw", "-a", "-n", sweepIterations)
		return []results.Curve{curve(w.Name, rows,
			func(r lab.Row) float64 { return r.Values[lab.BandwidthAverage] * mib * 8 / 1e9 })}, err
	})
	b.sizes("latency", "Write latency by size: median and 99th percentile, half a round trip", "µs", wires[:2],
		func(w lab.Wire) ([]results.Curve, error) {
			rows, _, err := b.perftestRows(w, "ib_write_lat", "-a", "-n", sweepIterations)
			return []results.Curve{
				curve(w.Name, rows, func(r lab.Row) float64 { return r.Values[lab.LatencyTypical] }),
				curve(w.Name+", 99 %", rows, func(r lab.Row) float64 { return r.Values[lab.LatencyPercent99] }),
			}, err
		})
}

// sizes adds a sweep over message sizes with each wire's curves.
func (b *bench) sizes(id, title, unit string, wires []lab.Wire, curves func(lab.Wire) ([]results.Curve, error)) {
	s := results.Sweep{ID: id, Title: title, X: "message, bytes", Unit: unit}
	for _, w := range wires {
		b.progress("sweep", title+": "+w.Name)
		c, err := curves(w)
		if err != nil {
			b.omit(title+": "+w.Name, err)
			continue
		}
		s.Curves = append(s.Curves, c...)
	}
	b.result.Sweeps = append(b.result.Sweeps, s)
}

func curve(name string, rows []lab.Row, y func(lab.Row) float64) results.Curve {
	c := results.Curve{Name: name}
	for _, r := range rows {
		c.Points = append(c.Points, results.Point{X: float64(r.Bytes), Y: y(r)})
	}
	return c
}
