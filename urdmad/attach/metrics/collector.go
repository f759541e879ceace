package metrics

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"urdma/inspect"
)

// gatherTime is how long a scrape waits for a snapshot.
const gatherTime = 3 * time.Second

// Collector is a prometheus.Collector that gathers a snapshot for each scrape.
type Collector struct {
	gather   func(context.Context) (*inspect.Snapshot, error)
	families []family
	descs    []*prometheus.Desc

	mu   sync.Mutex
	most map[string]float64 // last shown counters, see rising
	busy ratio
}

// NewCollector returns a Collector that calls gather at each scrape.
func NewCollector(gather func(context.Context) (*inspect.Snapshot, error)) *Collector {
	c := &Collector{gather: gather, families: families(), most: map[string]float64{}}
	for _, f := range c.families {
		c.descs = append(c.descs, prometheus.NewDesc(f.name, f.help, f.labels, nil))
	}
	return c
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		ch <- d
	}
}

// Collect implements prometheus.Collector. A scrape fails as a whole if the poll loop does not
// answer.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), gatherTime)
	defer cancel()
	s, err := c.gather(ctx)
	if err != nil {
		ch <- prometheus.NewInvalidMetric(c.descs[0], err)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	v := newView(s, 0)
	v.busyRatio = c.busy.of(s)
	for i, f := range c.families {
		f.values(v, func(value float64, labels ...string) {
			if f.kind == counter {
				value = c.rising(f.name, labels, value)
			}
			ch <- prometheus.MustNewConstMetric(c.descs[i], f.kind, value, labels...)
		})
	}
}

// rising keeps a counter from decreasing. Sums over queue pairs miss those removed while the
// snapshot was gathered; Prometheus would take a decrease for a restart, and count the whole
// value as growth.
func (c *Collector) rising(name string, labels []string, value float64) float64 {
	key := name + "\xff" + strings.Join(labels, "\xff")
	value = max(value, c.most[key])
	c.most[key] = value
	return value
}

// ratio computes the share of busy turns, over at least one second.
type ratio struct {
	at          time.Time
	turns, busy uint64
	last        float64
}

func (r *ratio) of(s *inspect.Snapshot) float64 {
	if !r.at.IsZero() && s.Taken.Sub(r.at) < time.Second {
		return r.last
	}
	if turns := s.Loop.Turns - r.turns; turns > 0 {
		r.last = float64(s.Loop.BusyTurns-r.busy) / float64(turns)
	} else {
		r.last = 0
	}
	r.at, r.turns, r.busy = s.Taken, s.Loop.Turns, s.Loop.BusyTurns
	return r.last
}
