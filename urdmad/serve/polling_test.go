package serve

import (
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"testing"

	"urdma/config"
	"urdma/dpdk/port"
	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/worker"
)

// TestPolicyOnSlowMachine: a default follows the measurement; a configured value, even if equal to the default,
// stays.
func TestPolicyOnSlowMachine(t *testing.T) {
	slow := worker.Machine{Yield: 3 * clock.Microsecond, Sleep: 100 * clock.Microsecond}
	for _, c := range []struct {
		setting string
		machine worker.Machine
		yield   worker.Time
	}{
		{``, worker.Machine{}, 200 * clock.Microsecond},
		{``, slow, clock.Millisecond},
		{`,"polling":{"spin_us":7}`, slow, clock.Millisecond},
		{`,"polling":{"yield_us":200}`, slow, 200 * clock.Microsecond},
		{`,"polling":{"yield_us":0}`, slow, 0},
		{`,"polling":{"max_sleep_us":0}`, slow, math.MaxInt64},
	} {
		file := filepath.Join(t.TempDir(), "urdma.json")
		if err := os.WriteFile(file, []byte(`{"ports":[{"vdev":"loopback","ipv4_address":"198.18.0.1/24"}]`+c.setting+`}`),
			0o600); err != nil {
			t.Fatal(err)
		}
		cfg, err := config.Load(file, func(string) {})
		if err != nil {
			t.Fatal(err)
		}
		d := &Core{Config: cfg, Machine: c.machine}
		if got := d.Policy(0).Yield; got != c.yield {
			t.Errorf("%s on %+v: yields for %d ns, expected %d", c.setting, c.machine, got, c.yield)
		}
	}
}

// queues is a port with this number of queues.
type queues struct {
	port.Port
	n int
}

func (q queues) Queues() int { return q.n }

// TestAutoWorkers: "auto" makes several workers if at least one port has a queue for each, otherwise one. Listed
// workers stay.
func TestAutoWorkers(t *testing.T) {
	for _, c := range []struct {
		auto   bool
		queues []int
		want   int
	}{
		{true, []int{4}, 4}, {true, []int{1, 4}, 4}, {true, []int{1}, 1}, {true, []int{1, 1}, 1}, {false, []int{1}, 4},
	} {
		cfg := &config.Config{AutoWorkers: c.auto, Workers: make([]config.Worker, 4)}
		d := &Core{Config: cfg, Log: slog.New(slog.DiscardHandler)}
		for _, n := range c.queues {
			d.Ports = append(d.Ports, queues{n: n})
		}
		if d.settleWorkers(); d.Workers() != c.want || len(cfg.Workers) != 4 {
			t.Errorf("auto %v, queues %v: %d workers, expected %d, and the configuration as it was", c.auto, c.queues,
				d.Workers(), c.want)
		}
	}
}
